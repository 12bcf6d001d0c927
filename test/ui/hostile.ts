import fc from 'fast-check';

const FRAGMENTS = [
  '::error::',
  '::add-mask::',
  '::',
  '##[',
  '##[command]',
  '##',
  '#',
  '[',
  '##vso[task.setvariable]',
  '\n    at ',
  ']',
  '\n',
  '\r',
  '\r\n',
  '\t',
  ' ',
  '\u001b[2J',
  '\u001b[31m',
  '\u001b]0;title\u0007',
  '\u001b]8;;https://evil.test\u001b\\',
  '\u001b',
  '\u009b31m',
  '\u009d0;x\u009c',
  '\u0007',
  '\u0000',
  '\u202e',
  '\u2066',
  '\u200b',
  '\u2028',
  '\u{e0041}',
  '\ud800',
  '\u0301\u0301\u0301\u0301\u0301',
  '😀',
  '漢',
  'a',
  'vso',
];

/** Text as the worst registry would write it. */
export const hostileText = fc.oneof(
  fc.array(fc.constantFrom(...FRAGMENTS), { maxLength: 12 }).map((parts) => parts.join('')),
  fc.string({ unit: 'binary', maxLength: 80 }),
);

/** What no printed text may hold, whoever wrote it: a name for the first thing found. */
export function danger(text: string): string | undefined {
  for (const line of text.split('\n')) {
    if (/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u.test(line))
      return `control or invisible character in ${JSON.stringify(line)}`;
    if (/^\s*::\D/.test(line)) return `command in ${JSON.stringify(line)}`;
    if (/##\w*\[/.test(line)) return `old command in ${JSON.stringify(line)}`;
  }
  return undefined;
}
