import { untrusted } from './text.ts';

/** Lines that are shown whole, but for rows at the end. Empty lines part Markdown's blocks and belong to it. */
export type Block = {
  /** What counts less (a higher number) is left out first. */
  readonly rank: number;
  readonly head: readonly string[];
  readonly rows: readonly string[];
  readonly tail: readonly string[];
};

/** Text that is no Markdown, whatever it holds: what begins something there, GitHub's additions included, is escaped. */
export function plain(text: string, limit: number): string {
  return untrusted(text, limit).replace(/[\\`*_{}[\]<>#+\-.!|~&:@=$^]/g, '\\$&');
}

/** A name or digest as code; characters that would end it, or the cell of a table, leave plain text. */
export function code(text: string): string {
  const safe = untrusted(text, 500);
  return safe === '' || /[`|\\<>&]/.test(safe) ? plain(safe, 500) : `\`${safe}\``;
}

/** Text within a tag of HTML. */
export function html(text: string): string {
  return untrusted(text, 500).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** A line of a table. */
export function tableRow(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`;
}

/** Bytes that are kept free for saying that something was left out. */
const RESERVE = 200;

/** The blocks in their order, within `limit` bytes: by rank, and within one rank the first ones first. */
export function fitted(blocks: readonly Block[], limit: number): string {
  const kept = new Map<Block, number>();
  let room = limit - RESERVE;
  for (const block of [...blocks].sort((one, other) => one.rank - other.rank)) {
    const frame = bytesOf([...block.head, ...block.tail]);
    const rows = rowsWithin(block.rows, room - frame);
    // A frame without rows says nothing, unless there never were any.
    if (frame > room || (rows === 0 && block.rows.length > 0)) continue;
    kept.set(block, rows);
    room -= frame + bytesOf(block.rows.slice(0, rows));
  }
  const all = blocks.reduce((sum, { rows }) => sum + rows.length, 0);
  const shown = [...kept.values()].reduce((sum, rows) => sum + rows, 0);
  const lines = blocks.flatMap((block) => {
    const rows = kept.get(block);
    return rows === undefined ? [] : [...block.head, ...block.rows.slice(0, rows), ...block.tail];
  });
  const rest = shown < all ? [`${all - shown} rows were left out: the summary of a step has room for 1 MB.`, ''] : [];
  return [...lines, ...rest].map((line) => `${line}\n`).join('');
}

function rowsWithin(rows: readonly string[], room: number): number {
  let left = room;
  for (const [at, row] of rows.entries()) {
    left -= bytesOf([row]);
    if (left < 0) return at;
  }
  return rows.length;
}

function bytesOf(lines: readonly string[]): number {
  return lines.reduce((sum, line) => sum + Buffer.byteLength(line) + 1, 0);
}
