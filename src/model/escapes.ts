/**
 * A text of others, ready for `stripVTControlCharacters`. That of Node 24 looks for the end of an operating system
 * command (`ESC ]`) through all that follows, for each anew: 64 KiB of them take seconds. Those after the last end have
 * none, and are put in the other way of writing what begins a sequence, in which it looks for no commands. What it
 * leaves of them are control characters, as before.
 */
export function withoutEndless(text: string): string {
  const end = Math.max(...['\x07', '\x9c', '\x1b\\'].map((mark) => text.lastIndexOf(mark))) + 1;
  return text.slice(0, end) + text.slice(end).replaceAll('\x1b]', '\x9b]');
}
