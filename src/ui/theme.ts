import { styleText } from 'node:util';
import { cut, guard, textWidth } from './text.ts';

/** How one stream is written to. `width` in columns; Infinity when it is no terminal, then nothing is shortened. */
export type Theme = {
  readonly color: boolean;
  readonly unicode: boolean;
  readonly width: number;
};

/** What is asked of a stream to make its theme. */
export type ThemedStream = NodeJS.WritableStream & { readonly isTTY?: boolean; readonly columns?: number };

/** Meanings, not colours. */
export type Style = 'good' | 'bad' | 'warn' | 'strong' | 'quiet';

const FORMATS = { good: 'green', bad: 'red', warn: 'yellow', strong: 'bold', quiet: 'dim' } as const;

const UNICODE = {
  ok: '✔',
  bad: '✖',
  dot: '·',
  ellipsis: '…',
  branch: '├─',
  last: '└─',
  pipe: '│',
  frames: ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'],
} as const;

const ASCII = {
  ok: 'ok',
  bad: 'x',
  dot: ',',
  ellipsis: '...',
  branch: '|-',
  last: '`-',
  pipe: '|',
  frames: ['-', '\\', '|', '/'],
} as const;

/** Symbols, in the characters that the stream can show. */
export function symbols(theme: Theme): typeof UNICODE | typeof ASCII {
  return theme.unicode ? UNICODE : ASCII;
}

/**
 * Colour as Node decides it for this stream (a terminal, NO_COLOR, FORCE_COLOR, TERM=dumb), unless `noColor`. A
 * terminal that tells no size counts as 80 columns.
 */
export function themeFor(stream: ThemedStream, flags: { readonly noColor: boolean; readonly unicode: boolean }): Theme {
  const colored = styleText('red', '.', { stream }) !== '.';
  const width = stream.isTTY === true ? stream.columns || 80 : Number.POSITIVE_INFINITY;
  return { color: colored && !flags.noColor, unicode: flags.unicode, width };
}

/** Whether a locale or a Windows terminal shows more than ASCII; without any locale it is assumed, as CI logs do. */
export function showsUnicode(env: Readonly<Record<string, string | undefined>>, platform: string): boolean {
  if (platform === 'win32') return [env['WT_SESSION'], env['TERM_PROGRAM'], env['CI']].some(Boolean);
  const locale = env['LC_ALL'] || env['LC_CTYPE'] || env['LANG'];
  return !locale || /utf-?8/i.test(locale);
}

/** The text in the colour of its meaning. */
export function paint(theme: Theme, style: Style | undefined, text: string): string {
  if (!theme.color || style === undefined || text === '') return text;
  return styleText(FORMATS[style], text, { validateStream: false });
}

/** Facts set side by side and parted by dots, in as many lines as the width asks for. */
export function flow(parts: readonly string[], theme: Theme, indent: string): string[] {
  const dot = symbols(theme).dot;
  const separator = dot === ',' ? ', ' : ` ${dot} `;
  const lines: string[] = [];
  for (const part of parts) {
    const last = lines.at(-1);
    const joined = last === undefined ? undefined : last + separator + part;
    if (joined !== undefined && textWidth(joined) <= theme.width) lines[lines.length - 1] = joined;
    else lines.push(indent + part);
  }
  return lines;
}

/** Cuts to the width of the theme. */
export function cropped(text: string, theme: Theme): string {
  return cut(text, theme.width, symbols(theme).ellipsis);
}

/**
 * The lines as they go to the stream, each ended. Every document passes here, so that no line can be a command to a
 * CI runner, whatever its parts were, and no byte beyond ASCII reaches a stream that cannot show it.
 */
export function page(lines: readonly string[], theme: Theme): string {
  return lines.map((line) => `${inCharset(guard(line), theme)}\n`).join('');
}

function inCharset(line: string, theme: Theme): string {
  if (theme.unicode) return line;
  return line.replaceAll(UNICODE.ellipsis, ASCII.ellipsis).replace(/[^\0-~]/gu, '?');
}
