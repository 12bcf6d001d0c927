import { stripVTControlCharacters } from 'node:util';
import { withoutEndless } from '../model/escapes.ts';
import type { HttpHeaders, HttpResponse } from './message.ts';

/** What an error answer said, in words that are safe to print and on one line. */
export type ErrorBody = {
  /** The first `errors[].code`; undefined when the body holds none. */
  readonly code: string | undefined;
  /** All `errors[].code`, in order. */
  readonly codes: readonly string[];
  /** The message of the first error, the title of a page, the first line of a text. */
  readonly message: string | undefined;
  /** `errors[0].detail`, flattened: it is where Quay and others say what is missing. */
  readonly detail: string | undefined;
};

/** Longest error body that is looked at, in bytes. */
export const ERROR_BODY_LIMIT: number = 64 * 1024;

const LINE_LIMIT = 300;
const MOST_ERRORS = 20;
const NOTHING: ErrorBody = { code: undefined, codes: [], message: undefined, detail: undefined };

/** Reads the body of an error answer, as far as it comes. Never fails; the answer is used up. */
export async function readErrorBody(response: HttpResponse): Promise<ErrorBody> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of response.stream() as AsyncIterable<Uint8Array>) {
      chunks.push(chunk);
      length += chunk.byteLength;
      // Leaving the loop closes the connection.
      if (length >= ERROR_BODY_LIMIT) break;
    }
  } catch (error) {
    // The status has been told; half an explanation is better than another error on top of it.
    if (chunks.length === 0) return { ...NOTHING, message: `(its explanation broke off: ${oneLine(String(error))})` };
  }
  const body = parseErrorBody(Buffer.concat(chunks).subarray(0, ERROR_BODY_LIMIT), response.headers);
  return response.conceal === undefined ? body : concealed(body, response.conceal);
}

/** Some registries and proxies repeat what they were sent, `Authorization` included. */
function concealed({ codes, message, detail }: ErrorBody, conceal: (text: string) => string): ErrorBody {
  const shown = codes.map(conceal);
  return {
    code: shown[0],
    codes: shown,
    message: message === undefined ? undefined : conceal(message),
    detail: detail === undefined ? undefined : conceal(detail),
  };
}

/**
 * Finds code and message in whatever came: the spec's JSON, the JSON of token servers and proxies, a page, plain text
 * (Docker Hub's 429), nothing.
 *
 * @see distribution-spec v1.1.1 spec.md, section "Error Codes"
 */
export function parseErrorBody(bytes: Uint8Array, headers: HttpHeaders): ErrorBody {
  const encoding = headers['content-encoding']?.trim().toLowerCase() ?? '';
  if (encoding !== '' && encoding !== 'identity') return NOTHING;
  const text = new TextDecoder().decode(bytes).trim();
  const json = parseJson(text);
  if (json !== undefined) return fromJson(json) ?? { ...NOTHING, message: lineOf(text) };
  const isPage = /^text\/html\b|^application\/xhtml\b/i.test(headers['content-type'] ?? '') || text.startsWith('<');
  return { ...NOTHING, message: lineOf(isPage ? pageText(text) : firstLine(text)) };
}

/**
 * Text of a stranger, made fit for a message: one line, cut, without control characters, marks that turn the direction
 * of writing, and what CI runners take for commands.
 *
 * @see https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
 */
export function oneLine(text: string, limit: number = LINE_LIMIT): string {
  const plain = stripVTControlCharacters(withoutEndless(text.slice(0, ERROR_BODY_LIMIT)))
    // Line breaks part words; other controls, and what is invisible, just go.
    .replace(/\s+/gu, ' ')
    .replace(/[\p{Cc}\p{Cf}\p{Cs}]/gu, '')
    .trim()
    .replace(/^::/, '|::')
    .replaceAll('##[', '#|#[');
  // A cut may go through a pair of surrogates.
  return plain.length > limit ? `${plain.slice(0, limit - 1).replace(/[\ud800-\udbff]$/, '')}…` : plain;
}

function lineOf(text: string): string | undefined {
  const line = oneLine(text);
  return line === '' ? undefined : line;
}

function firstLine(text: string): string {
  return text.split(/[\r\n]/, 1)[0] ?? '';
}

function parseJson(text: string): Readonly<Record<string, unknown>> | undefined {
  if (!text.startsWith('{')) return undefined;
  try {
    return asObject(JSON.parse(text));
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function fromJson(json: Readonly<Record<string, unknown>>): ErrorBody | undefined {
  if (Array.isArray(json['errors'])) {
    const errors = json['errors'].slice(0, MOST_ERRORS).map(asObject);
    const codes = errors.map((error) => codeOf(error?.['code'])).filter((code) => code !== undefined);
    const first = errors[0];
    return { code: codes[0], codes, message: textOf(first?.['message']), detail: detailOf(first?.['detail']) };
  }
  // OAuth token servers (RFC 6749, section 5.2), Docker Hub's, and frameworks in front of either.
  const message = ['error_description', 'message', 'details', 'detail', 'error', 'title']
    .map((key) => textOf(json[key]))
    .find((value) => value !== undefined);
  return message === undefined ? undefined : { ...NOTHING, message };
}

function codeOf(value: unknown): string | undefined {
  return typeof value === 'string' && /^[\w.-]{1,64}$/.test(value) ? value : undefined;
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? lineOf(value) : undefined;
}

/** A text, or the texts and numbers of an object; deeper levels tell a user nothing. */
function detailOf(value: unknown): string | undefined {
  const object = asObject(value);
  if (object === undefined) return textOf(value);
  const parts = Object.entries(object)
    .filter(([, part]) => typeof part === 'string' || typeof part === 'number')
    .map(([key, part]) => `${key}: ${part}`);
  return lineOf(parts.join(', '));
}

function asObject(value: unknown): Readonly<Record<string, unknown>> | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, unknown>>)
    : undefined;
}

/** The title of a page, or else its text. Scanned by hand: expressions over tags are slow on hostile input. */
function pageText(html: string): string {
  const open = html.search(/<title/i);
  const start = open === -1 ? -1 : html.indexOf('>', open);
  const title = start === -1 ? '' : html.slice(start + 1, html.indexOf('<', start + 1));
  if (title.trim() !== '') return title;
  let text = '';
  let at = 0;
  while (at < html.length && text.length < LINE_LIMIT * 2) {
    const tag = html.indexOf('<', at);
    text += `${html.slice(at, tag === -1 ? html.length : tag)} `;
    const close = tag === -1 ? -1 : html.indexOf('>', tag);
    at = close === -1 ? html.length : close + 1;
  }
  return text;
}
