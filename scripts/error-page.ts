import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ROOT } from './root.ts';

type Entry = { readonly code: string; readonly exitCode: number; readonly cause: string; readonly cure: string };

const MEANINGS: Readonly<Record<number, string>> = {
  2: 'usage, configuration or input; platforms that are ambiguous or contradict each other',
  3: 'login, permission, quota',
  4: 'not there',
  5: 'registry or network, after retries; time limit',
  6: 'integrity',
  7: 'refused by a rule',
  8: 'a file or disk of this machine',
  9: 'some lists failed',
  130: 'interrupted',
  143: 'terminated',
};

/** The page of all error codes, from the comments in `src/errors.ts`: a code without cause and cure is an error. */
export async function errorPage(): Promise<string> {
  const entries = read(await readFile(join(ROOT, 'src', 'errors.ts'), 'utf8'));
  const exits = [...new Set(entries.map(({ exitCode }) => exitCode))];
  return `# Errors

Every failure has a code that does not change. \`--json\` has it in \`error.code\`, beside \`message\`, \`hint\` and \`exitCode\`;
without \`--json\` stderr has message and hint. Exit code 1 is a bug of ours, shown as \`BUG\`: please report it. Texts that
other tools print, and what to do about them: [troubleshooting.md](troubleshooting.md).

<!-- made from src/errors.ts by npm run generate; do not edit -->

${exits.map((exit) => section(exit, entries)).join('\n\n')}
`;
}

function section(exit: number, entries: readonly Entry[]): string {
  const rows = entries.filter(({ exitCode }) => exitCode === exit);
  const body = rows.map(({ code, cause, cure }) => `**\`${code}\`** ${cause} *Cure:* ${cure}`);
  return [`## ${exit}: ${MEANINGS[exit] ?? ''}`, ...body].join('\n\n');
}

function read(source: string): readonly Entry[] {
  const table = source.slice(source.indexOf('export const EXIT_CODES'), source.indexOf('} as const'));
  const entries = [...table.matchAll(/\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s+([A-Z_]+): (\d+),/g)].map(
    ([, comment = '', code = '', exit = '']) => {
      const [cause = '', cure] = comment
        .replaceAll(/\s*\n\s*\*\s?/g, ' ')
        .trim()
        .split(' Cure: ');
      if (cure === undefined) throw new Error(`src/errors.ts: ${code} does not say its cure`);
      return { code, exitCode: Number(exit), cause, cure: cure.trim() };
    },
  );
  const codes = [...table.matchAll(/^ {2}([A-Z_]+): \d+,$/gm)].map(([, code]) => code);
  const bare = codes.filter((code) => !entries.some((entry) => entry.code === code));
  if (bare.length > 0) throw new Error(`src/errors.ts: no comment on ${bare.join(', ')}`);
  return entries;
}
