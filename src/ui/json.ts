/** Characters that a terminal or a log viewer may act on and that JSON.stringify leaves alone. */
const ESCAPED = /[\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}]/gu;

/**
 * JSON that is the same data to every parser and harmless to a terminal and to a CI runner, which reads stderr and
 * stdout for `##[command]`: such characters are written as escapes. They can only stand inside strings.
 */
export function jsonText(value: unknown, indent?: number): string {
  return JSON.stringify(value, null, indent).replaceAll('##', '#\\u0023').replace(ESCAPED, escapeUnits);
}

function escapeUnits(character: string): string {
  let escaped = '';
  for (let at = 0; at < character.length; at += 1) {
    escaped += `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`;
  }
  return escaped;
}
