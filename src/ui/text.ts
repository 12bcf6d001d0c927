import { stripVTControlCharacters } from 'node:util';
import { withoutEndless } from '../model/escapes.ts';

/** Longest text of others that is looked at, in UTF-16 units; the rest is dropped before any expression runs. */
const LOOK_AT = 64 * 1024;

/**
 * Text that a registry, a config or a helper wrote, made fit to be printed: one line, without escape sequences,
 * control, bidirectional and invisible characters, without secrets that URLs and `Authorization` values carry, and
 * without anything a CI runner would take for a command. At most `limit` columns.
 */
export function untrusted(text: string, limit = 600): string {
  const plain = stripVTControlCharacters(withoutEndless(text.slice(0, LOOK_AT)))
    .replace(/\s+/gu, ' ')
    // Cc: escapes that are left and C1. Cf: bidirectional, zero width and tag characters. Cs: lone surrogates.
    .replace(/[\p{Cc}\p{Cf}\p{Cs}]/gu, '')
    // A tall stack of accents paints over the lines above and below.
    .replace(/(\p{M}{3})\p{M}+/gu, '$1')
    .trim();
  // Only now: an invisible character within an address would have hidden it.
  return cut(guard(redact(plain)), limit, '…');
}

/**
 * Breaks what runners act on: `::name::` where a line starts (GitHub; also after a space, where a terminal or a log
 * viewer may break the line) and `##name[` anywhere (`##[` GitHub's old form, `##vso[` Azure, `##teamcity[`). Addresses
 * such as `::1` stay.
 *
 * @see actions/runner, ActionCommand.cs: V2 looks at the trimmed start of a line, V1 anywhere in it
 */
export function guard(line: string): string {
  return line.replace(/(^|\s)::(?!\d)/gu, '$1|::').replace(/##(?=\w*\[)/gu, '#|#');
}

/** Takes out userinfo and queries of URLs (presigned storage URLs are bearer secrets) and `Authorization` values. */
export function redact(text: string): string {
  return (
    text
      .replace(/\/\/[^\s/@]*@/gu, '//***@')
      // Each address whole, with or without a query: looking for the query would look at a row of them again and again.
      .replace(/https?:\/\/[^\s"'<>]*/giu, (url) => url.replace(/\?.*$/su, '?***'))
      .replace(/\b([Bb]earer|[Bb]asic)\s+(?![Aa]uth)(?=[\w.~+/-]*[A-Z0-9=])[\w.~+/-]{8,}=*/gu, '$1 ***')
  );
}

/** A URL without userinfo, query and fragment. */
export function bareUrl(url: string): string {
  return redact(url).replace(/[?#].*$/su, '');
}

/** Columns that the text takes on a terminal; escape sequences are not expected in it. */
export function textWidth(text: string): number {
  let width = 0;
  for (const character of text) width += characterWidth(character);
  return width;
}

/**
 * The text, cut to `width` columns with `ellipsis` as its end where it has room. An address such as `::1`, which
 * {@link guard} leaves alone, does not become the start of a runner's command by losing its digits.
 */
export function cut(text: string, width: number, ellipsis: string): string {
  // No UTF-16 unit is wider than two columns.
  if (text.length * 2 <= width || textWidth(text) <= width) return text;
  const tail = textWidth(ellipsis) < width ? ellipsis : '';
  const room = width - textWidth(tail);
  let kept = '';
  let used = 0;
  for (const character of text) {
    used += characterWidth(character);
    if (used > room) break;
    kept += character;
  }
  return kept.replace(/(?<=^|\s)::$/u, ':') + tail;
}

/** The text without its beginning: of references the end tells them apart. @see cut */
export function cutStart(text: string, width: number, ellipsis: string): string {
  if (textWidth(text) <= width) return text;
  const lead = textWidth(ellipsis) < width ? ellipsis : '';
  const characters = [...text];
  let kept = textWidth(text);
  while (kept > width - textWidth(lead)) kept -= characterWidth(characters.shift() ?? '');
  return lead + characters.join('');
}

const ZERO = /^[\p{M}\p{Cf}\p{Cc}]$/u;
const TWO =
  /^[\p{Emoji_Presentation}\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]$/u;

/** By Unicode's East Asian Width, W and F being two columns wide. */
function characterWidth(character: string): 0 | 1 | 2 {
  if (character >= ' ' && character <= '~') return 1;
  if (ZERO.test(character)) return 0;
  return TWO.test(character) ? 2 : 1;
}
