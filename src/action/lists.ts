/** An item in quotes, which a doubled quote stands in for, up to a comma or the end of the line. */
const QUOTED = /[^\S\r\n]*"((?:[^"]|"")*)"[^\S\r\n]*(?:,|\r\n?|\n|$)/y;
/** An item that ends at a comma, with its line, or before a comment; a `#` within a word is a part of it. */
const PLAIN = /((?:[^,\s]|[^\S\r\n]+(?![^\S\r\n]|#))*)[^\S\r\n]*(?:#[^\r\n]*)?(?:,|\r\n?|\n|$)/y;
/** An item that is a line, or the rest of one. */
const LINE = /([^\r\n]*)(?:\r\n?|\n|$)/y;
const COMMENT = /[^\S\r\n]*#[^\r\n]*(?:\r\n?|\n|$)/y;

/**
 * The items of an input, as the actions of docker read theirs: on lines of their own or with commas between them, as CSV,
 * so that quotes keep a comma. A line or an item that begins with `#` is a comment, up to the end of the line. Empty items
 * are passed over.
 *
 * @param commas false: an item is a whole line, as its commas are its own
 * @see https://github.com/docker/actions-toolkit, src/util.ts, getList
 */
export function listOf(text: string, { commas = true }: { readonly commas?: boolean } = {}): readonly string[] {
  const items: string[] = [];
  for (let at = 0; at < text.length; ) {
    const read = (pattern: RegExp) => {
      const here = new RegExp(pattern);
      here.lastIndex = at;
      return here.exec(text);
    };
    const comment = read(COMMENT);
    const quoted = comment === null ? read(QUOTED) : null;
    const found = comment ?? quoted ?? read(commas ? PLAIN : LINE);
    if (found === null) break;
    at += found[0].length;
    const item = quoted === null ? (comment === null ? (found[1] ?? '') : '') : (found[1] ?? '').replaceAll('""', '"');
    if (item.trim() !== '') items.push(item.trim());
  }
  return items;
}
