/** What a terminal showed from `at` on, in seconds; lines hold escape sequences for colours. */
export type Frame = { readonly at: number; readonly lines: readonly string[] };

const CHARACTER = { width: 8.4, height: 19, size: 14 };
const MARGIN = 14;
/** How long the end is shown before it begins anew, in seconds. */
const REST = 6;

/** The eight colours as GitHub's dark theme has them. */
const COLORS: ReadonlyMap<number, string> = new Map([
  [31, '#ff7b72'],
  [32, '#7ee787'],
  [33, '#e3b341'],
]);

/** A picture that moves, of nothing but text: no script, no font, no link. */
export function animate(frames: readonly Frame[], columns: number, title: string): string {
  const rows = Math.max(...frames.map(({ lines }) => lines.length));
  const [width, height] = [columns * CHARACTER.width + 2 * MARGIN, rows * CHARACTER.height + 2 * MARGIN];
  const whole = (frames.at(-1)?.at ?? 0) + REST;
  const shown = frames.map(({ at, lines }, index) => {
    const until = frames[index + 1]?.at;
    const [from, to] = [at, until ?? whole].map((seconds) => (seconds / whole).toFixed(4));
    const times = until === undefined ? `0;${from}` : `0;${from};${to}`;
    const values = until === undefined ? 'hidden;visible' : 'hidden;visible;hidden';
    // A viewer that does not move pictures shows the end.
    const still = until === undefined ? 'visible' : 'hidden';
    const animation = `<animate attributeName="visibility" values="${values}" keyTimes="${times}" dur="${whole.toFixed(1)}s" calcMode="discrete" repeatCount="indefinite"/>`;
    return `<g visibility="${still}">${animation}\n${lines.map(textOf).filter(Boolean).join('\n')}\n</g>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${Math.ceil(width)} ${Math.ceil(height)}" font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" font-size="${CHARACTER.size}" role="img">
<title>${escaped(title)}</title>
<rect width="100%" height="100%" rx="8" fill="#0d1117"/>
<g fill="#e6edf3" xml:space="preserve">
${shown.join('\n')}
</g>
</svg>
`;
}

function textOf(line: string, row: number): string {
  const y = MARGIN + (row + 0.75) * CHARACTER.height;
  let column = 0;
  let style = '';
  const spans: string[] = [];
  // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences are what is read here
  for (const [part, codes] of line.matchAll(/\u001b\[([\d;]*)m|[^\u001b]+/g)) {
    if (codes !== undefined) style = restyled(style, codes);
    else {
      // Each piece stands where its first character does: the reader's font may be wider than ours.
      const x = MARGIN + column * CHARACTER.width;
      const length = ([...part].length * CHARACTER.width).toFixed(1);
      const space = part.trim() === '';
      if (!space)
        spans.push(
          `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" textLength="${length}"${style}>${escaped(part)}</text>`,
        );
      column += [...part].length;
    }
  }
  return spans.join('');
}

function restyled(style: string, codes: string): string {
  let next = style;
  for (const code of codes.split(';').map(Number)) {
    const color = COLORS.get(code);
    if (code === 0) next = '';
    else if (code === 1) next += ' font-weight="bold"';
    else if (code === 2) next += ' opacity="0.7"';
    else if (code === 22) next = next.replace(/ (?:font-weight|opacity)="[^"]*"/g, '');
    else next = next.replace(/ fill="[^"]*"/, '') + (color === undefined ? '' : ` fill="${color}"`);
  }
  return next;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
