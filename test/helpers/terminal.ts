import { execFileSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { findProgram, type Variables } from './processes.ts';

/** Whether there is a terminal to look at; a lane that needs one skips aloud without. */
export const HAS_TERMINAL: boolean = findProgram('tmux') !== undefined;

/** A real terminal, of tmux: what a person would see. */
export type Terminal = {
  /** What it shows, without the spaces at the ends of lines and the empty lines below. */
  screen(): readonly string[];
  /** With what has scrolled out of sight, and with colours as escape sequences when asked for. */
  everything(options?: { readonly colors?: boolean }): string;
  /** Types the text, or with `key` presses a key by tmux's name of it (`C-c`, `Tab`). */
  type(text: string): void;
  key(name: string): void;
  resize(columns: number, rows: number): void;
  readonly cursorShown: () => boolean;
  /** Where the cursor stands: columns from the left. */
  readonly cursorColumn: () => number;
  /** @throws Error with the screen, when it does not come to hold within `timeout` ms (default 15 s) */
  until(condition: (text: string) => boolean, timeout?: number): Promise<string>;
  stop(): void;
};

let opened = 0;

/** Opens one that runs the command of a shell, in an environment of these variables alone. */
export function openTerminal(
  command: string,
  options: { readonly columns?: number; readonly rows?: number; readonly cwd?: string; readonly env?: Variables } = {},
): Terminal {
  const { columns = 80, rows = 24, cwd = '/', env = {} } = options;
  opened += 1;
  const server = `manifest-publish-${process.pid}-${opened}`;
  const path = process.env['PATH'] ?? '';
  const tmux = (...args: readonly string[]): string =>
    execFileSync('tmux', ['-L', server, '-f', '/dev/null', ...args], {
      encoding: 'utf8',
      env: { PATH: path, LANG: 'C.UTF-8', SHELL: '/bin/sh', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  const size = ['-x', String(columns), '-y', String(rows)];
  // One call: the option must be there before a command that ends at once does.
  tmux(
    'set',
    '-g',
    'remain-on-exit',
    'on',
    ';',
    'set',
    '-g',
    'status',
    'off',
    ';',
    'new',
    '-d',
    ...size,
    '-c',
    cwd,
    command,
  );
  const capture = (...flags: readonly string[]) => tmux('capture-pane', '-p', ...flags);
  const fact = (format: string) => tmux('display-message', '-p', format).trim();
  const tidy = (text: string) =>
    text
      .split('\n')
      .map((line) => line.trimEnd())
      .join('\n')
      // What tmux itself says of a command that has ended.
      .replace(/\nPane is dead[^\n]*\s*$/, '')
      .trimEnd();
  return {
    screen: () => tidy(capture()).split('\n'),
    everything: ({ colors = false } = {}) => tidy(capture('-S', '-', ...(colors ? ['-e'] : []))),
    type: (text) => void tmux('send-keys', '-l', text),
    key: (name) => void tmux('send-keys', name),
    resize: (wide, high) => void tmux('resize-window', '-x', String(wide), '-y', String(high)),
    cursorShown: () => fact('#{cursor_flag}') === '1',
    cursorColumn: () => Number(fact('#{cursor_x}')),
    async until(condition, timeout = 15_000) {
      const deadline = Date.now() + timeout;
      for (;;) {
        const text = tidy(capture());
        if (condition(text)) return text;
        if (Date.now() > deadline) throw new Error(`it did not come; the terminal shows:\n${text}`);
        await sleep(20);
      }
    },
    stop: () => void tmux('kill-server'),
  };
}
