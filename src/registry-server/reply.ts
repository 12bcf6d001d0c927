/** Codes of distribution-spec v1.1.1, section "Error Codes", and those that the imitated registries made up. */
export type RegistryCode =
  | 'BLOB_UNKNOWN'
  | 'BLOB_UPLOAD_INVALID'
  | 'BLOB_UPLOAD_UNKNOWN'
  | 'DIGEST_INVALID'
  | 'MANIFEST_BLOB_UNKNOWN'
  | 'MANIFEST_INVALID'
  | 'MANIFEST_UNKNOWN'
  | 'NAME_INVALID'
  | 'NAME_UNKNOWN'
  | 'SIZE_INVALID'
  | 'UNAUTHORIZED'
  | 'DENIED'
  | 'UNSUPPORTED'
  | 'TOOMANYREQUESTS'
  | 'TAG_INVALID'
  | 'TAG_IMMUTABLE'
  | 'PRECONDITION'
  | 'RANGE_ERROR'
  | 'RANGE_INVALID'
  | 'REQUESTED_RANGE_NOT_SATISFIABLE'
  | 'CONTENT_LENGTH_INVALID'
  | 'PAGINATION_NUMBER_INVALID'
  | 'INTERNAL_ERROR'
  | 'UNKNOWN';

export type ReplyHeaders = Readonly<Record<string, string | readonly string[]>>;

/** A body of known length; `pieces` is called once, or not at all for HEAD. */
export type ReplyBody = { readonly length: number; readonly pieces: () => AsyncIterable<Buffer> | Iterable<Buffer> };

/** What a handler decided, as data, so that faults can spoil it before it is sent. */
export type Reply =
  | {
      readonly kind: 'answer';
      readonly status: number;
      readonly headers: ReplyHeaders;
      readonly body?: ReplyBody;
      /** The connection is closed after the answer. */
      readonly close?: boolean;
    }
  /** Nothing is sent: the connection is dropped, by a RST or by a plain close. */
  | { readonly kind: 'cut'; readonly how: 'reset' | 'close' };

export type Answer = Extract<Reply, { kind: 'answer' }>;

export function answer(status: number, headers: ReplyHeaders = {}, body?: ReplyBody): Answer {
  return { kind: 'answer', status, headers, ...(body === undefined ? {} : { body }) };
}

export function bytesBody(bytes: Uint8Array): ReplyBody {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return { length: buffer.length, pieces: () => [buffer] };
}

export function json(status: number, value: unknown, headers: ReplyHeaders = {}): Answer {
  const body = bytesBody(Buffer.from(JSON.stringify(value)));
  return answer(status, { 'Content-Type': 'application/json', ...headers }, body);
}

export function plain(status: number, text: string, headers: ReplyHeaders = {}): Answer {
  return answer(status, { 'Content-Type': 'text/plain; charset=utf-8', ...headers }, bytesBody(Buffer.from(text)));
}

/** What a web server in front of a registry says. */
export function html(status: number, title: string, headers: ReplyHeaders = {}): Answer {
  const page = `<html>\r\n<head><title>${status} ${title}</title></head>\r\n<body><center><h1>${status} ${title}</h1></center><hr><center>nginx</center></body>\r\n</html>\r\n`;
  return answer(status, { 'Content-Type': 'text/html', ...headers }, bytesBody(Buffer.from(page)));
}

/** One problem of an error answer. */
export type Problem = { readonly code: RegistryCode; readonly message: string; readonly detail?: unknown };

/** @see distribution-spec v1.1.1 spec.md, section "Error Codes" */
export function refuse(
  status: number,
  code: RegistryCode,
  message: string,
  detail?: unknown,
  headers?: ReplyHeaders,
): Answer {
  return refuseAll(status, [{ code, message, ...(detail === undefined ? {} : { detail }) }], headers);
}

export function refuseAll(status: number, errors: readonly Problem[], headers: ReplyHeaders = {}): Answer {
  return json(status, { errors }, headers);
}
