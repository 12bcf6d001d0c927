import { stripVTControlCharacters } from 'node:util';
import { textWidth } from './text.ts';

/** A terminal and the size that it has now. */
type Terminal = { write(text: string): unknown; readonly columns: number; readonly rows: number };

/** Lines at the end of what the terminal shows, drawn over each time. No cursor is hidden: a kill leaves no harm. */
export function easelOn(stream: Terminal): { draw(lines: readonly string[]): void } {
  let shown: readonly string[] = [];
  return {
    draw(lines) {
      // A terminal that has become narrower has broken the lines that stand there.
      const rows = shown.map((line) =>
        Math.max(1, Math.ceil(textWidth(stripVTControlCharacters(line)) / stream.columns)),
      );
      const height = rows.reduce((sum, each) => sum + each, 0);
      const back = height === 0 ? '' : `\u001b[${height}A\u001b[J`;
      // What has scrolled out of sight could not be taken back.
      shown = lines.slice(0, Math.max(1, stream.rows - 1));
      const text = back + shown.map((line) => `${line}\n`).join('');
      if (text !== '') stream.write(text);
    },
  };
}
