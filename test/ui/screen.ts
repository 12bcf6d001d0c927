/** What a terminal shows: as much of a VT100 as drawing programs use. */
export type Screen = { readonly lines: readonly string[]; readonly cursorShown: boolean };

// biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences are what is read here
const PART = /\u001b\[([?\d;]*)([A-Za-z])|[\r\n]|[^\u001b\r\n]+/gu;

/** Plays what was written to a terminal that is tall enough never to scroll. */
export function play(written: string): Screen {
  const rows: string[][] = [[]];
  let [row, column, cursorShown] = [0, 0, true];
  for (const [part, argument = '', command] of written.matchAll(PART)) {
    const amount = Number(argument) || 1;
    if (part === '\r') column = 0;
    else if (part === '\n') row += 1;
    else if (command === undefined) {
      for (const character of part) {
        const line = rows[row] ?? [];
        while (line.length < column) line.push(' ');
        line[column] = character;
        rows[row] = line;
        column += 1;
      }
    } else if (command === 'A') row = Math.max(0, row - amount);
    else if (command === 'B') row += amount;
    else if (command === 'G') column = amount - 1;
    else if (command === 'C') column += amount;
    else if (command === 'D') column = Math.max(0, column - amount);
    else if (command === 'K') {
      if (argument === '2') rows[row] = [];
      else if (argument === '1') rows[row]?.fill(' ', 0, column + 1);
      else rows[row] = (rows[row] ?? []).slice(0, column);
    } else if (command === 'J') {
      rows[row] = (rows[row] ?? []).slice(0, column);
      rows.length = Math.min(rows.length, row + 1);
    } else if (argument === '?25') cursorShown = command === 'h';
    else if (command !== 'm' && argument !== '?2026')
      throw new Error(`a sequence no test knows: ${JSON.stringify(part)}`);
    while (rows.length <= row) rows.push([]);
  }
  const lines = Array.from(rows, (line) =>
    Array.from(line ?? [], (cell) => cell ?? ' ')
      .join('')
      .trimEnd(),
  );
  while (lines.at(-1) === '') lines.pop();
  return { lines, cursorShown };
}
