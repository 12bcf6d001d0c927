import { stripVTControlCharacters } from 'node:util';
import { textWidth } from './text.ts';

/** A terminal and the size that it has now. */
type Terminal = { write(text: string): unknown; readonly columns: number; readonly rows: number };

const CLEAR_LINE = '\u001b[K';

/**
 * Lines at the end of what the terminal shows, drawn over each time. Line by line: tmux takes a clearing of all of the
 * screen for one by the user, and keeps in its history what stood there, ten times a second. No cursor is hidden: a
 * kill leaves no harm.
 */
export function easelOn(stream: Terminal): { draw(lines: readonly string[]): void } {
  let shown: readonly string[] = [];
  return {
    draw(lines) {
      // A terminal that has become narrower has broken the lines that stand there.
      const rows = shown.map((line) =>
        Math.max(1, Math.ceil(textWidth(stripVTControlCharacters(line)) / stream.columns)),
      );
      const height = rows.reduce((sum, each) => sum + each, 0);
      // What has scrolled out of sight could not be taken back.
      shown = lines.slice(0, Math.max(1, stream.rows - 1));
      const left = Math.max(0, height - shown.length);
      if (height + shown.length === 0) return;
      // Cleared before it is written: behind a line that fills the width its last character would be cleared. The
      // row below is cleared too, and the cursor may not be at its beginning: ^C is shown there when it is typed.
      const text = [
        `\r${up(height)}`,
        ...shown.map((line) => `${CLEAR_LINE}${line}\n`),
        ...Array.from({ length: left }, () => `${CLEAR_LINE}\n`),
        `${CLEAR_LINE}${up(left)}`,
      ];
      stream.write(text.join(''));
    },
  };
}

function up(rows: number): string {
  return rows === 0 ? '' : `\u001b[${rows}A`;
}
