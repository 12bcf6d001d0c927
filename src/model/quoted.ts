/** Longest piece of foreign text that a message repeats, in UTF-16 units. */
const QUOTE_MAX = 160;

/** C1 controls, line separators and the marks that turn the direction of writing: JSON leaves them as they are. */
const UNPRINTABLE = /[\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

/** Text of a user or a registry as a message may show it: in quotes, cut, on one line, no terminal controls. */
export function quoted(text: string): string {
  const cut = text.length > QUOTE_MAX ? `${text.slice(0, QUOTE_MAX)}…` : text;
  return JSON.stringify(cut).replace(UNPRINTABLE, (mark) => `\\u${mark.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Whether a message may show the text as it is: no controls, no line ends, no marks that turn the writing. */
export function isPrintable(text: string): boolean {
  return text.search(UNPRINTABLE) < 0 && !/\p{Cc}/u.test(text);
}
