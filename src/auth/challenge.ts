/** One way in which a registry wants to be shown who asks. */
export type Challenge = {
  /** In lower case: `basic`, `bearer`, or whatever else it is. */
  readonly scheme: string;
  /** By name in lower case; of a name that comes twice the first value. */
  readonly parameters: ReadonlyMap<string, string>;
};

/** Longest header that is looked at, in characters. */
const LIMIT = 16 * 1024;

const TOKEN = /[!#$%&'*+\-.^_`|~0-9A-Za-z]/;
/** Some servers leave out the quotes around addresses. */
const BARE = /[^,\s"]/;
const TOKEN68 = /[-._~+/0-9A-Za-z=]/;

/**
 * Reads all challenges of a `WWW-Authenticate`, several headers joined by commas included. Nonsense is skipped up to
 * the next comma; a quotation that never ends reaches to the end. One pass, so that no header takes long.
 *
 * @see RFC 9110, section 11.6.1
 */
export function parseChallenges(header: string): readonly Challenge[] {
  const text = header.slice(0, LIMIT);
  const challenges: { readonly scheme: string; readonly parameters: Map<string, string> }[] = [];
  let at = 0;

  const run = (allowed: RegExp): string => {
    const start = at;
    while (at < text.length && allowed.test(text.charAt(at))) at += 1;
    return text.slice(start, at);
  };
  const skip = (characters: string): void => {
    while (at < text.length && characters.includes(text.charAt(at))) at += 1;
  };

  while (at < text.length) {
    skip(' \t,');
    const name = run(TOKEN);
    if (name === '') {
      // Neither a scheme nor a parameter starts like this.
      const comma = text.indexOf(',', at);
      at = comma === -1 ? text.length : comma;
      continue;
    }
    const afterName = at;
    skip(' \t');
    if (text.charAt(at) === '=') {
      at += 1;
      skip(' \t');
      const value = text.charAt(at) === '"' ? quotedString() : run(BARE);
      const parameters = challenges.at(-1)?.parameters;
      if (parameters !== undefined && !parameters.has(name.toLowerCase())) parameters.set(name.toLowerCase(), value);
      continue;
    }
    challenges.push({ scheme: name.toLowerCase(), parameters: new Map() });
    if (at > afterName) skipToken68();
  }
  return challenges;

  function quotedString(): string {
    let value = '';
    at += 1;
    while (at < text.length && text.charAt(at) !== '"') {
      if (text.charAt(at) === '\\') at += 1;
      value += text.charAt(at);
      at += 1;
    }
    at += 1;
    return value;
  }

  /** Some schemes (Negotiate) have one bare word in place of parameters; it says nothing to us. */
  function skipToken68(): void {
    const start = at;
    const word = run(TOKEN68);
    skip(' \t');
    const isWhole = at >= text.length || text.charAt(at) === ',';
    // `name=value` looks like it up to a sign that only values have, or up to what follows the equals sign.
    if (!isWhole || /^[^=]+=[^=]/.test(word)) at = start;
  }
}

/** The one to answer: tokens before passwords, where a registry takes both. */
export function answerable(challenges: readonly Challenge[]): Challenge | undefined {
  return (
    challenges.find(({ scheme, parameters }) => scheme === 'bearer' && parameters.has('realm')) ??
    challenges.find(({ scheme }) => scheme === 'basic')
  );
}
