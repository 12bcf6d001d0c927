import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { rolldown } from 'rolldown';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { digest } from './samples.ts';
import { play, type Screen } from './screen.ts';

/** util-linux: a command on a pseudo terminal. BSD's takes other arguments. */
const hasScript = spawnSync('script', ['--version']).stdout?.includes('util-linux') ?? false;

const folder = mkdtempSync(join(tmpdir(), 'manifest-publish-tty-'));

beforeAll(async () => {
  const bundle = await rolldown({ input: join(import.meta.dirname, 'tty-child.ts'), platform: 'node' });
  await bundle.write({ dir: folder, format: 'esm', entryFileNames: 'child.mjs' });
  await bundle.close();
});

afterAll(() => rmSync(folder, { recursive: true }));

/** Written by the child in between; a reset of colours, so that it is nothing to a terminal. */
const markOf = (name: string) => `\u001b[0m<${name}>`;

type Ended = {
  readonly code: number;
  readonly stdout: string;
  /** All that was written to the terminal. */
  readonly terminal: string;
  /** What the terminal showed when the child wrote a mark, or in the end. */
  at(mark: 'resolving' | 'working' | 'ending' | 'end'): Screen;
};

/** stderr and stdin are the terminal; stdout is a file, as in `x=$(manifest-publish …)`. */
function run(how: string, columns = 100, env: NodeJS.ProcessEnv = {}): Promise<Ended> {
  const out = join(folder, `${how}-${columns}.out`.replaceAll(' ', '-'));
  const node = `"${process.execPath}" "${join(folder, 'child.mjs')}" ${how} > "${out}"`;
  const command = `stty cols ${columns} rows 30; exec ${node}`;
  const { CI: _ci, NO_COLOR: _noColor, FORCE_COLOR: _forceColor, ...rest } = process.env;
  const options = { env: { ...rest, TERM: 'xterm-256color', ...env }, timeout: 30_000 };
  return new Promise((resolve) => {
    execFile('script', ['-qec', command, '/dev/null'], options, (error, written) => {
      const marks = ['resolving', 'working', 'ending'].map(markOf);
      const code = error === null ? 0 : Number(error.code);
      const terminal = marks.reduce((text, mark) => text.replace(mark, ''), written);
      const at: Ended['at'] = (mark) => {
        const until = mark === 'end' ? written.length : written.indexOf(markOf(mark));
        return play(marks.reduce((text, each) => text.replace(each, ''), written.slice(0, until)));
      };
      resolve({ code, stdout: readFileSync(out, 'utf8'), terminal, at });
    });
  });
}

const WARNING = 'warning: the registry says: "::error::this repository moves soon"';

describe.skipIf(!hasScript)('on a terminal', () => {
  test('draws on stderr, keeps stdout for the result and leaves nothing but warnings', async () => {
    const { code, stdout, terminal, at } = await run('whole');
    expect(code).toBe(0);
    expect(stdout).toBe(`${digest('index')}\n`);
    expect(at('resolving').lines).toEqual([expect.stringMatching(/^[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] reading 1 of 4 sources$/)]);
    expect(at('working').lines).toEqual([
      expect.stringMatching(/^[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] blobs 1 of 8 · mounted 1$/),
      expect.stringMatching(
        /^ {2}sha256:2804bad6fe94 {2}\[####------] {2}15\.0 MB of 31\.4 MB {2}\d+\.\d MB\/s {2}0:\d\d {2}mount answered 202$/,
      ),
      expect.stringMatching(
        /^ {2}sent 15\.0 MB, 16\.4 MB to go( {3}\d+\.\d MB\/s {3}0:\d\d)? {3}0 requests · 1 retry$/,
      ),
      expect.stringMatching(/^ {2}waiting 1\d\.\d s for docker\.io \(429\)$/),
      expect.stringMatching(/^[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] manifests 0 of 4$/),
      expect.stringMatching(/^[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] tags 0$/),
    ]);
    expect(terminal).toContain('\u001b[33m');
    expect(terminal, 'hides the cursor').not.toContain('?25l');
    const ending = at('ending').lines.join('\n');
    expect(ending).toContain('blobs 3 of 8 · mounted 1 · copied 1 (31.4 MB) · present 1');
    expect(ending).toContain('warning: the registry says');
    expect(ending).toContain('tags 1   public.ecr.aws/debian/debian:bullseye updated');
    expect(at('end')).toEqual({ lines: [WARNING, 'summary'], cursorShown: true });
  });

  test('keeps to a narrow terminal', async () => {
    const { at } = await run('whole', 42);
    for (const mark of ['resolving', 'working', 'ending'] as const) {
      expect(at(mark).lines.length).toBeGreaterThan(0);
      for (const line of at(mark).lines) expect(line.length, line).toBeLessThanOrEqual(42);
    }
    expect(at('working').lines[1]).toMatch(/^ {2}sha256:2804bad6fe94 {2}15\.0 MB of 31\.4 MB/);
  });

  test('writes lines on a terminal that tells no size', async () => {
    const { at } = await run('whole', 0);
    expect(at('end').lines[0]).toBe('reading 4 sources for public.ecr.aws/debian/debian:bullseye');
    expect(at('end').lines.at(-1)).toBe('summary');
  });

  test('has neither colour nor more than ASCII where neither is wanted', async () => {
    const { terminal, at } = await run('whole ascii', 100, { NO_COLOR: '1' });
    expect(at('working').lines[0]).toMatch(/^[-\\|/] blobs 1 of 8, mounted 1$/);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: colours are what must not be there
    expect(terminal).not.toMatch(/\u001b\[[1-9]\d*m/);
    expect(at('working').lines.join('')).toMatch(/^[ -~]*$/);
    expect(terminal).not.toMatch(/[^\p{ASCII}]/u);
  });

  test('draws nothing when the run is over at once', async () => {
    const { terminal, stdout } = await run('quick');
    expect(terminal).toBe(`\u001b[33mwarning:\u001b[39m${WARNING.slice('warning:'.length)}\r\nsummary\r\n`);
    expect(stdout).toBe(`${digest('index')}\n`);
  });

  test('is clean after Ctrl-C', async () => {
    const { code, stdout, at } = await run('interrupted');
    expect(code).toBe(130);
    expect(stdout).toBe('');
    expect(at('working').lines.length).toBeGreaterThan(3);
    expect(at('end')).toEqual({ lines: ['error: interrupted'], cursorShown: true });
  });

  test('leaves the cursor and shows the error when the process dies of a bug', async () => {
    const { code, at } = await run('crash');
    expect(code).toBe(1);
    const { lines, cursorShown } = at('end');
    expect(lines.join('\n')).toContain('Error: a bug');
    expect(cursorShown).toBe(true);
  });

  test('does not keep a process alive that forgot to stop it', async () => {
    const began = performance.now();
    const { code, at } = await run('left');
    expect(code).toBe(7);
    expect(performance.now() - began).toBeLessThan(5_000);
    expect(at('end').cursorShown).toBe(true);
  });
});
