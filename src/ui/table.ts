import { cut, cutStart, textWidth, untrusted } from './text.ts';
import { page, paint, type Style, symbols, type Theme } from './theme.ts';

/** `short` stands in for `text` where the table would be too wide; `lead` is ours and stands before it with its spaces. */
export type Cell =
  | string
  | { readonly text: string; readonly lead?: string; readonly short?: string; readonly style?: Style };

export type Column = {
  readonly title: string;
  readonly align?: 'left' | 'right';
  /** Left out on narrow terminals, the highest number first; 0: not before cutting was not enough either. */
  readonly drop?: number;
  /** Cut on narrow terminals when leaving out was not enough; `start`: at the beginning. */
  readonly shrink?: boolean | 'start';
};

/** A column together with its cells; what is chosen, left out and cut as one. */
type Strip = { readonly column: Column; readonly cells: readonly Exclude<Cell, string>[]; readonly width: number };

const GAP = 2;
/** A cut cell keeps at least this many columns: less says nothing. */
const LEAST = 8;

/** A table as a document of its own. */
export function renderTable(columns: readonly Column[], rows: readonly (readonly Cell[])[], theme: Theme): string {
  return page(tableLines(columns, rows, theme, ''), theme);
}

/**
 * A table that fits the theme's width if it can: first short forms, then without the columns that may be dropped,
 * then with cells cut. Columns without content are left out; without titles there is no head.
 */
export function tableLines(
  columns: readonly Column[],
  rows: readonly (readonly Cell[])[],
  theme: Theme,
  indent = '  ',
): string[] {
  const room = theme.width - textWidth(indent);
  const strips = narrow(
    columns
      .map((column, at) =>
        strip(
          column,
          rows.map((row) => cellOf(row[at] ?? '')),
        ),
      )
      .filter(hasContent),
    room,
    symbols(theme).ellipsis,
  );
  const head = strips.map(({ column }) => ({ text: column.title, style: 'quiet' as const }));
  const body = rows.map((_, at) => strips.map((each) => each.cells[at] ?? { text: '' }));
  const titled = strips.some(({ column }) => column.title !== '');
  return (titled ? [head, ...body] : body).map((cells) => indent + lineOf(strips, cells, theme));
}

/** Whatever a cell holds, it is shown as text and on one line. */
function cellOf(cell: Cell): Exclude<Cell, string> {
  return typeof cell === 'string'
    ? { text: untrusted(cell) }
    : { ...cell, text: `${cell.lead ?? ''}${untrusted(cell.text)}` };
}

function strip(column: Column, cells: Strip['cells']): Strip {
  return { column, cells, width: Math.max(textWidth(column.title), ...cells.map((cell) => textWidth(cell.text))) };
}

function hasContent(strip: Strip): boolean {
  return strip.cells.some((cell) => cell.text !== '');
}

function narrow(strips: readonly Strip[], room: number, ellipsis: string): readonly Strip[] {
  if (total(strips) <= room) return strips;
  let kept = strips.map(({ column, cells }) =>
    strip(
      column,
      cells.map((cell) => ({ ...cell, text: cell.short ?? cell.text })),
    ),
  );
  const droppable = kept
    .filter(({ column }) => (column.drop ?? 0) > 0)
    .sort((a, b) => (b.column.drop ?? 0) - (a.column.drop ?? 0));
  for (const gone of droppable) {
    if (total(kept) <= room) break;
    kept = kept.filter((each) => each !== gone);
  }
  const shrinkable = kept.filter(({ column }) => column.shrink).sort((a, b) => b.width - a.width);
  for (const wide of shrinkable) {
    const excess = total(kept) - room;
    if (excess <= 0) break;
    const width = Math.max(LEAST, textWidth(wide.column.title), wide.width - excess);
    const shorter = wide.column.shrink === 'start' ? cutStart : cut;
    const cells = wide.cells.map((cell) => ({ ...cell, text: shorter(cell.text, width, ellipsis) }));
    kept = kept.map((each) => (each === wide ? strip(each.column, cells) : each));
  }
  return total(kept) <= room ? kept : kept.filter(({ column }) => column.drop !== 0);
}

function total(strips: readonly Strip[]): number {
  return strips.reduce((sum, { width }) => sum + width + GAP, -GAP);
}

function lineOf(strips: readonly Strip[], cells: readonly Exclude<Cell, string>[], theme: Theme): string {
  const filled = strips.map(({ column, width }, at) => {
    const cell = cells[at] ?? { text: '' };
    const space = ' '.repeat(Math.max(0, width - textWidth(cell.text)));
    const painted = paint(theme, cell.style, cell.text);
    return column.align === 'right' ? space + painted : painted + space;
  });
  return filled.join(' '.repeat(GAP)).trimEnd();
}
