import { stripVTControlCharacters } from 'node:util';
import { type Credential, Secret } from '../http/credential.ts';

/**
 * What this process knows and nobody may read in its output. Texts of registries, proxies and helpers can repeat what
 * they were sent; whatever is printed or written to a report goes through {@link Secrets.conceal}.
 */
export interface Secrets {
  /** A login, in every form in which a request carries it or an answer may repeat it. */
  addLogin(credential: Credential): void;
  /** A token, a password of a proxy, or anything else that stands for itself. */
  add(secret: string): void;
  /** The text with `***` for every secret in it, also for one whose end was cut off. */
  conceal(text: string): string;
}

/**
 * Shorter secrets are not looked for as such: `ab` would turn every text into stars, and who reads such a text learns
 * nothing. The longer forms in which they travel, such as `base64(user:ab)`, are.
 */
const SHORTEST = 4;
/** From this length on anything is taken for random. */
const SURELY_RANDOM = 16;
/** With two kinds of characters in it, this length is enough. */
const RANDOM = 6;
/** So much of a long secret is enough to be hidden, wherever it breaks off. */
const TELLING = 16;

const MASK = '***';
const DIGEST = /sha(?:256|384|512):[0-9a-f]{64,128}(?![0-9a-f])/y;
const KINDS: readonly RegExp[] = [/[a-z]/, /[A-Z]/, /[0-9]/, /[^a-zA-Z0-9]/];

type Form = { readonly text: string; readonly random: boolean };

/**
 * A register that starts empty. What looks random is hidden wherever it stands. A short or plain one (`secret`,
 * `1234`) is hidden where it stands as a word, and neither inside names and paths nor where it is the whole value of a
 * JSON field: a password that is a common word would otherwise falsify what the program says. In an address
 * (`https://…`), which a registry or its token server may have made of it, a whole part of the path is hidden too. Digests
 * stay in any case.
 */
export function createSecrets(): Secrets {
  /** By their first {@link SHORTEST} characters, so that a text is gone through once, however many there are. */
  const forms = new Map<string, Form[]>();
  const starts = new Set<number>();
  const logins = new WeakSet<Credential>();

  function addForms(texts: readonly string[]): void {
    for (const text of texts) {
      if (text.length < SHORTEST) continue;
      const start = text.slice(0, SHORTEST);
      const known = forms.get(start) ?? [];
      if (known.some((form) => form.text === text)) continue;
      known.push({ text, random: looksRandom(text) });
      forms.set(start, known);
      starts.add(text.charCodeAt(0));
    }
  }

  /** How many characters from `at` on are to be hidden. */
  function hiddenAt(text: string, at: number): number {
    let most = 0;
    for (const form of forms.get(text.slice(at, at + SHORTEST)) ?? []) {
      const length = sharedLength(form.text, text, at);
      if (length > most && isTold(form, text, at, length)) most = length;
    }
    return most;
  }

  return {
    addLogin(credential) {
      if (credential.kind === 'none' || logins.has(credential)) return;
      logins.add(credential);
      const isBasic = credential.kind === 'basic';
      const secret = (isBasic ? credential.password : credential.token).reveal();
      const login = `${isBasic ? credential.username : ''}:${secret}`;
      addForms([...spellings(secret), ...base64Of(secret), ...spellings(login), ...base64Of(login)]);
    },
    add: (secret) => addForms(spellings(secret)),
    conceal(text) {
      if (starts.size === 0) return text;
      let shown = '';
      let from = 0;
      for (let at = 0; at + SHORTEST <= text.length; ) {
        const digest = digestLength(text, at);
        const hidden = digest > 0 || !starts.has(text.charCodeAt(at)) ? 0 : hiddenAt(text, at);
        if (hidden > 0) {
          shown += text.slice(from, at) + MASK;
          from = at + hidden;
        }
        at += Math.max(1, digest, hidden);
      }
      return shown + text.slice(from);
    },
  };
}

/** Tells the register the logins that stand in the addresses of proxies (`http_proxy` and its like). */
export function addProxyLogins(secrets: Secrets, env: Readonly<Record<string, string | undefined>>): void {
  for (const [name, value] of Object.entries(env)) {
    if (!/^(?:https?|all)_proxy$/i.test(name) || value === undefined) continue;
    const [, username = '', password = ''] = /^(?:[a-z]+:\/\/)?([^/@]*?):([^/@]*)@/i.exec(value) ?? [];
    secrets.add(password);
    secrets.addLogin({ kind: 'basic', username: plainOf(username), password: new Secret(plainOf(password)) });
  }
}

/** Without `%` codes, unless they are broken. */
function plainOf(encoded: string): string {
  try {
    return decodeURIComponent(encoded);
  } catch (error) {
    if (error instanceof URIError) return encoded;
    throw error;
  }
}

/** As the secret is, and as addresses, forms, JSON, HTML and a single line of text spell it. */
function spellings(secret: string): readonly string[] {
  const address = wellFormed(secret, encodeURIComponent);
  const html = secret
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
  const line = stripVTControlCharacters(secret)
    .replace(/\s+/gu, ' ')
    .replace(/[\p{Cc}\p{Cf}\p{Cs}]/gu, '')
    .trim();
  return [
    secret,
    address,
    address.replace(/%[0-9A-F]{2}/g, (hex) => hex.toLowerCase()),
    new URLSearchParams([['', secret]]).toString().slice(1),
    JSON.stringify(secret).slice(1, -1),
    html,
    line,
  ];
}

function base64Of(secret: string): readonly string[] {
  const bytes = Buffer.from(secret);
  const padded = bytes.toString('base64');
  return [padded, padded.replace(/=+$/, ''), bytes.toString('base64url')];
}

/** A password may hold half a surrogate pair, which no address can carry. */
function wellFormed(text: string, encode: (text: string) => string): string {
  return encode(text.replace(/\p{Cs}/gu, '\ufffd'));
}

/** Whether the text may be hidden wherever it stands: no word that somebody writes means it. */
export function looksRandom(text: string): boolean {
  const kinds = KINDS.filter((kind) => kind.test(text)).length;
  return text.length >= SURELY_RANDOM || (text.length >= RANDOM && kinds >= 2);
}

function sharedLength(secret: string, text: string, at: number): number {
  let length = SHORTEST;
  while (length < secret.length && secret.charCodeAt(length) === text.charCodeAt(at + length)) length += 1;
  return length;
}

/** Whether these characters tell the secret, and nothing else. */
function isTold({ text: secret, random }: Form, text: string, at: number, length: number): boolean {
  const rest = text.slice(at + length, at + length + 3);
  const isCut = rest.startsWith('…') || rest === '...';
  if (length < secret.length && !isCut && !(random && length >= TELLING)) return false;
  return random || isWord(text, at, rest, isCut);
}

function isWord(text: string, at: number, rest: string, isCut: boolean): boolean {
  const before = text.slice(Math.max(0, at - 4), at);
  if (before.endsWith('/') && isSegment(rest, isCut) && isInAddress(text, at)) return true;
  if (/[A-Za-z0-9/._-]$/.test(before)) return false;
  if (/":\s?"$/.test(before) && rest.startsWith('"')) return false;
  // A field that is named so, or a number: hidden, the document would not be one any more.
  if ((before.endsWith('"') && rest.startsWith('":')) || /":\s?$/.test(before)) return false;
  return isCut || !/^(?:[A-Za-z0-9/_-]|\.[A-Za-z0-9])/.test(rest);
}

/** Whether a part of a path ends here. */
function isSegment(rest: string, isCut: boolean): boolean {
  return isCut || !/^[A-Za-z0-9._~%!$&'()*+,;=:@-]/.test(rest);
}

/** An address that is longer than this (UTF-16 units) up to the place is not gone through. */
const ADDRESS_MAX = 2048;

/** Whether the word that reaches up to here is an address with a scheme, and not a name of an image or a file. */
function isInAddress(text: string, at: number): boolean {
  const least = Math.max(0, at - ADDRESS_MAX);
  let start = at;
  while (start > least && !/[\s"'<>()]/.test(text.charAt(start - 1))) start -= 1;
  return /^[a-z][a-z0-9+.-]*:\/\//i.test(text.slice(start, at));
}

function digestLength(text: string, at: number): number {
  if (text.charAt(at) !== 's') return 0;
  DIGEST.lastIndex = at;
  return DIGEST.exec(text)?.[0].length ?? 0;
}
