/**
 * The URL of a text, or undefined. Not by `URL.canParse`: node 20, once it has compiled a call of it, reads the Latin-1
 * of a header as if it were UTF-8, and says yes to a host at which the constructor throws. What a registry sends must
 * never end the program.
 */
export function parseUrl(text: string, base?: URL): URL | undefined {
  try {
    return new URL(text, base);
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}
