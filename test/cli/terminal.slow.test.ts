import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type RunningRegistry, seedDebian } from '../../src/registry-server/index.ts';
import type { Variables } from '../helpers/processes.ts';
import { startRegistry } from '../helpers/registry.ts';
import { HAS_TERMINAL, openTerminal, type Terminal } from '../helpers/terminal.ts';
import { BIN, emptyFolder, variables } from './program.ts';

const TITLE = HAS_TERMINAL ? 'in a terminal' : 'in a terminal (tmux is not installed)';
const folder = emptyFolder();
let registry: RunningRegistry;
let sources: string;
let target: string;
let terminal: Terminal | undefined;

beforeEach(async () => {
  registry = await startRegistry({ changes: { mount: { mode: 'ignore' } } });
  const images = seedDebian(registry, { layerBytes: 100_000 });
  sources = images.map((image) => `${registry.host}/${image.repository}:${image.tag}`).join(' ');
  target = `${registry.host}/debian/debian:bullseye`;
});

afterEach(async () => {
  terminal?.stop();
  terminal = undefined;
  await registry.close();
});

/** Opens a terminal in which a script publishes and shows what it got on stdout; it stays open. */
function publishing(options: { columns?: number; env?: Variables; term?: string } = {}): Terminal {
  const { columns = 100, env = {}, term = '' } = options;
  const words = `${term} '${process.execPath}' '${BIN}' publish ${target} ${sources}`;
  // The shell lives on when Ctrl-C ends the program.
  const script = `trap : INT; echo before; x=$(${words}); printf '[%s] exit %s\\n' "$x" "$?"; exec sleep 100`;
  terminal = openTerminal(script, { columns, rows: 30, cwd: folder, env: variables(folder, env) });
  return terminal;
}

const drawn = (text: string) => /blobs \d+ of 40/.test(text);
const ended = (text: string) => /^\[.*] exit \d+$/ms.test(text);
const indexOf = () => registry.tagOf('debian/debian', 'bullseye') ?? '';

describe.skipIf(!HAS_TERMINAL)(TITLE, () => {
  it('x=$(manifest-publish publish ...) draws progress and leaves exactly the digest in x', async () => {
    registry.configure({ upload: { commit: 'slow(1500)' } });
    const { until, everything } = publishing();
    const meanwhile = await until(drawn);
    expect(meanwhile).toMatch(/^before\n. blobs \d+ of 40/);
    expect(meanwhile).not.toContain('sha256:');
    await until(ended);
    const lines = everything().split('\n');
    expect(lines.at(-1)).toBe(`[${indexOf()}] exit 0`);
    // Nothing of the drawing is left, neither on the screen nor in what has scrolled out of it.
    expect(lines.filter(drawn)).toEqual([]);
    expect(lines[0]).toBe('before');
    expect(lines[1]).toMatch(/^created /);
  });

  it.each([40, 200])('keeps to %i columns', async (columns) => {
    registry.configure({ upload: { commit: 'slow(3000)' } });
    const { until, screen, cursorColumn } = publishing({ columns });
    await until((text) => /^. blobs .*\n {2}\d+ sent, no answer yet/m.test(text));
    // A line that was broken would stand in two.
    expect(screen().slice(1)).toEqual([
      expect.stringMatching(/^. blobs /),
      expect.stringMatching(/^ {2}\d+ sent, no answer yet/),
      expect.stringMatching(/^ {2}sent /),
      expect.stringMatching(/^. manifests /),
      expect.stringMatching(/^. tags 0$/),
    ]);
    const text = await until(ended);
    expect(text).not.toMatch(/blobs \d+ of 40/);
    const table = screen().filter((line) => /^ {2}(?:PLATFORM|linux\/)/.test(line));
    expect(table).toHaveLength(9);
    expect(cursorColumn()).toBe(0);
  });

  it('draws anew in a terminal that changes its size', async () => {
    registry.configure({ upload: { commit: 'slow(60000)' } });
    const { until, resize, key, everything } = publishing();
    const whole = (text: string) =>
      /^(?:before\n)?. blobs (?:.*\n(?!. blobs)){2,12}. manifests .*\n. tags 0$/.test(text);
    // When no line is so long that the terminal breaks it before we hear of its new size.
    await until((text) => whole(text) && /^. blobs .*\n {2}\d+ sent, no answer yet/m.test(text));
    for (const columns of [50, 120]) {
      resize(columns, 30);
      await until(whole);
    }
    key('C-c');
    await until(ended);
    // tmux may have put what stood above into its history.
    expect(everything()).toMatch(/^before\nerror: interrupted/);
  });

  it('Ctrl-C leaves a clean screen that says what stands', async () => {
    registry.configure({ upload: { commit: 'slow(60000)' } });
    const { until, key, cursorShown, cursorColumn, everything } = publishing();
    await until((text) => /no answer yet/.test(text));
    key('C-c');
    await until(ended);
    expect(everything().split('\n')).toEqual([
      'before',
      'error: interrupted (SIGINT)',
      expect.stringMatching(
        /^ {2}INTERRUPTED \(exit 130\) · no tag was moved · \d+ of 40 blobs and 0 of 8 manifests in place$/,
      ),
      'hint: Run the same command again: what is already in place is not sent twice.',
      '[] exit 130',
    ]);
    expect({ shown: cursorShown(), column: cursorColumn() }).toEqual({ shown: true, column: 0 });
    expect(registry.openSessions('debian/debian')).toBe(0);
  });

  it('shows whom it waits for, and how often it was sent away', async () => {
    registry.configure({ limit: { allPerSec: 10, retryAfter: 3 } });
    const { until } = publishing();
    await until((text) => /waiting \d\.\d s for 127\.0\.0\.1:\d+ \(status 429\)/.test(text));
    registry.configure({ limit: { allPerSec: 0 } });
    const text = await until(ended, 30_000);
    expect(text).toMatch(/\d+ retries/);
  });

  it('has no colour with NO_COLOR, and no more than ASCII where the locale knows no more', async () => {
    registry.configure({ upload: { commit: 'slow(1500)' } });
    const { until, everything } = publishing({ env: { NO_COLOR: '1', LC_ALL: 'C' } });
    expect(await until(drawn)).toMatch(/^before\n[-\\|/] blobs/);
    await until(ended);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: colours are what must not be there
    expect(everything({ colors: true })).not.toMatch(/\u001b\[[1-9]|[^\x00-\x7f]/);
  });

  it('writes lines on a dumb terminal', async () => {
    registry.configure({ upload: { commit: 'slow(500)' } });
    const { until, everything } = publishing({ columns: 200, term: 'TERM=dumb' });
    await until(ended);
    const lines = everything().split('\n');
    expect(lines[1]).toBe(`reading 8 sources for ${target}`);
    expect(lines.filter((line) => / pushed \(\d of 8\)$/.test(line))).toHaveLength(8);
  });
});
