import { PublishError } from '../errors.ts';

/**
 * What a failed exchange means. `again`: the next try may succeed. `once`: hardly, but name servers do stumble.
 * `tls`: the certificate or the handshake; asking again is no use. `not-tls`: the other side does not speak TLS.
 * `garbled`: it does not speak HTTP. `final`: anything else.
 */
export type FailureKind = 'again' | 'once' | 'tls' | 'not-tls' | 'garbled' | 'final';

const AGAIN: ReadonlySet<string> = new Set([
  'EAI_AGAIN',
  'ECONNABORTED',
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EPIPE',
  'ETIMEDOUT',
  'PROXY_FAILED',
  'SENDING_STALLED',
  'STALLED',
  'UND_ERR_BODY_TIMEOUT',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
  'UND_ERR_SOCKET',
]);

/** OpenSSL's names for a first byte that is no TLS record; which one depends on its version and on the byte. */
const NOT_TLS: ReadonlySet<string> = new Set([
  'ERR_SSL_HTTP_REQUEST',
  'ERR_SSL_PACKET_LENGTH_TOO_LONG',
  'ERR_SSL_RECORD_LAYER_FAILURE',
  'ERR_SSL_WRONG_VERSION_NUMBER',
]);

/** The same in the message of older nodes, which have one code for all that goes wrong in OpenSSL. */
const NOT_TLS_WORDS = /wrong version number|packet length too long|http request|record layer failure/;

/** @see https://nodejs.org/docs/latest-v20.x/api/tls.html#x509-certificate-error-codes */
const CERTIFICATE: ReadonlySet<string> = new Set([
  'CERT_CHAIN_TOO_LONG',
  'CERT_HAS_EXPIRED',
  'CERT_NOT_YET_VALID',
  'CERT_REJECTED',
  'CERT_REVOKED',
  'CERT_SIGNATURE_FAILURE',
  'CERT_UNTRUSTED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'HOSTNAME_MISMATCH',
  'INVALID_CA',
  'INVALID_PURPOSE',
  'PATH_LENGTH_EXCEEDED',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_DECODE_ISSUER_PUBLIC_KEY',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

const OVERFLOW: readonly string[] = ['UND_ERR_HEADERS_OVERFLOW', 'HPE_HEADER_OVERFLOW'];
/** HTTP, but not as it is spoken. */
const MALFORMED: Readonly<Record<string, string>> = {
  MALFORMED_HEADERS: 'headers that contradict themselves or the protocol',
  TOO_MANY_1XX: 'one 1xx after another',
  UNASKED_100: '100 Continue, which was not asked for',
  UNASKED_101: '101 Switching Protocols, which was not asked for',
  ...Object.fromEntries(OVERFLOW.map((code) => [code, 'headers of more than 16 KiB'])),
};
/** undici's parser has a sentence for what it could not read; this one is of what does not even begin like HTTP. */
const PARSER = 'HTTPParserError';
const NO_HTTP = /\(Expected HTTP\//;

/** The machine's name for the failure, such as `ECONNREFUSED`; the message where there is none. */
export function failureCode(error: unknown): string {
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') return error.code;
  return error instanceof Error ? error.name : 'unknown';
}

/** @see FailureKind */
export function failureKind(error: unknown): FailureKind {
  const code = failureCode(error);
  if (AGAIN.has(code)) return 'again';
  if (code === 'ENOTFOUND') return 'once';
  if (NOT_TLS.has(code)) return 'not-tls';
  if (code === 'EPROTO') return NOT_TLS_WORDS.test(String(error)) ? 'not-tls' : 'tls';
  if (CERTIFICATE.has(code) || code.startsWith('ERR_TLS_') || code.startsWith('ERR_SSL_')) return 'tls';
  return code.startsWith('HPE_') || code === PARSER || code in MALFORMED ? 'garbled' : 'final';
}

/** Failures of the network and of the other side have a code; undici's complaints about us have one of these. */
function isFromOutside(error: unknown): boolean {
  const code = failureCode(error);
  return (
    error instanceof Error && 'code' in error && code !== 'UND_ERR_INVALID_ARG' && code !== 'UND_ERR_NOT_SUPPORTED'
  );
}

/** Whether the other side went away without a word, as servers do that were spoken to in the wrong scheme. */
export function isHangUp(error: unknown): boolean {
  return ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'].includes(failureCode(error));
}

const WORDS: Readonly<Record<string, string>> = {
  EAI_AGAIN: 'its name could not be resolved just now',
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'the connection was cut',
  EHOSTUNREACH: 'no route to it',
  ENETUNREACH: 'no network leads to it',
  ENOTFOUND: 'its name is not known',
  EPIPE: 'the connection was cut',
  ETIMEDOUT: 'the connection timed out',
  PROXY_FAILED: 'the proxy did not get through',
  PROXY_TLS_FAILED: 'the certificate or TLS of the proxy was not accepted',
  PROXY_REFUSED: 'the proxy does not let us through',
  SENDING_STALLED: 'it took nothing more of what was sent',
  STALLED: 'the answer came at less than 1 KiB a second for a minute',
  UND_ERR_BODY_TIMEOUT: 'the answer fell silent',
  UND_ERR_CONNECT_TIMEOUT: 'no connection came about in time',
  UND_ERR_HEADERS_TIMEOUT: 'no answer came in time',
  UND_ERR_REQ_CONTENT_LENGTH_MISMATCH: 'what was to be sent had another length than announced',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'the answer broke off',
  UND_ERR_SOCKET: 'the connection was closed',
};

/** The status with which a proxy refused. */
function statusOf(error: unknown): string {
  return error instanceof Error && 'status' in error ? ` ${error.status}` : '';
}

/** What the exchange was, for messages. */
export type FailureScene = {
  /** Host as the user knows it, or as the registry named it. */
  readonly host: string;
  /** The registry that named the address. */
  readonly namedBy?: string | undefined;
  /** Host of the proxy, if one was in between. */
  readonly via: string | undefined;
  readonly sends: number;
  /** Whether the connection was meant to be plain HTTP, because the user said so or because that is tried first. */
  readonly plain?: false | 'wanted' | 'tried';
};

/** The failure as the user reads it. What is none of the network's is a bug of ours, and stays as it is. */
export function exchangeFailed(error: unknown, scene: FailureScene): unknown {
  if (error instanceof PublishError || !isFromOutside(error)) return error;
  const { host, namedBy, via, sends, plain = false } = scene;
  const code = failureCode(error);
  const details = { registry: host, cause: error };
  const tries = sends > 1 ? `, ${sends} tries` : '';
  switch (failureKind(error)) {
    case 'tls': {
      const { what, hint } = tlsWords(error, host);
      return new PublishError('TLS_FAILED', `${host}: ${what} (${code})`, hint, details);
    }
    case 'not-tls':
      return namedBy === undefined
        ? new PublishError(
            'TLS_FAILED',
            `${host} does not speak TLS (${code})`,
            `If it speaks plain HTTP, ${forHost('--plain-http', 'plainHttp', host)}.`,
            details,
          )
        : new PublishError(
            'TLS_FAILED',
            `${namedBy} sends us to https://${host}, which does not speak TLS (${code})`,
            `Have ${namedBy} name its address as it is reached: its own setting, or X-Forwarded-Proto of the proxy in front of it, says https.`,
            details,
          );
    case 'garbled':
      return new PublishError(
        'PROTOCOL_VIOLATED',
        `${host} ${garbledWords(error)} (${code})`,
        garbledAdvice(error, plain),
        details,
      );
    default:
      return new PublishError(
        'NETWORK_FAILED',
        `${host}${via === undefined ? '' : ` through the proxy ${via}`}: ${WORDS[code] ?? 'the request failed'} (${code}${statusOf(error)}${tries})`,
        via === undefined ? networkAdvice(code, plain !== false, host) : proxyAdvice(code),
        details,
      );
  }
}

function proxyAdvice(code: string): string {
  if (code === 'PROXY_TLS_FAILED') return "Trust the proxy's authority with --ca-file FILE, or name it by http://.";
  return 'Check HTTPS_PROXY, HTTP_PROXY and NO_PROXY, and the login in them.';
}

/** A registry that speaks plain http without a port listens on 80, so that https finds nobody (docker/cli#2347). */
function networkAdvice(code: string, plain: boolean, host: string): string {
  const again = "Check the name, the network and the registry's state, then run the same command again";
  if (code !== 'ECONNREFUSED' || plain) return `${again}.`;
  return `${again}; if it speaks plain HTTP, ${forHost('--plain-http', 'plainHttp', host)}.`;
}

/** What is wrong with an answer that is HTTP, if it is. */
function malformed(error: unknown): string | undefined {
  const code = failureCode(error);
  if (code !== PARSER) return MALFORMED[code];
  const reason = /\((.+)\)$/.exec(String(error))?.[1];
  return reason === undefined || NO_HTTP.test(String(error))
    ? undefined
    : reason.charAt(0).toLowerCase() + reason.slice(1);
}

function garbledWords(error: unknown): string {
  const what = 'answered with something that is not HTTP';
  const why = malformed(error);
  return why === undefined ? what : `${what} as it is spoken: ${why}`;
}

function garbledAdvice(error: unknown, plain: FailureScene['plain']): string {
  if (malformed(error) !== undefined) {
    return 'Check what stands between you and the registry; a proxy may be changing its answers.';
  }
  return plain === 'wanted'
    ? 'Leave out --plain-http: it may speak TLS.'
    : 'Check that the address and port are those of a registry.';
}

/** The name is not in the certificate: no authority can mend that. */
const OTHER_NAME: readonly string[] = ['ERR_TLS_CERT_ALTNAME_INVALID', 'HOSTNAME_MISMATCH'];

/** Alerts come from the other side: it is our certificate that it misses or mistrusts. */
const WANTS_CERTIFICATE = /^(?:CERTIFICATE_REQUIRED|HANDSHAKE_FAILURE)$/;
const REFUSES_CERTIFICATE =
  /^(?:BAD_CERTIFICATE|UNSUPPORTED_CERTIFICATE|CERTIFICATE_REVOKED|CERTIFICATE_EXPIRED|CERTIFICATE_UNKNOWN|UNKNOWN_CA|ACCESS_DENIED)$/;

/** Its name as in `ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED`; while connecting, node has it in the message alone. */
function alertOf(error: unknown): string | undefined {
  const named = /_ALERT_(\w+)$/.exec(failureCode(error))?.[1];
  return named ?? / alert ([\w ]+):/.exec(String(error))?.[1]?.toUpperCase().replaceAll(' ', '_');
}

function tlsWords(error: unknown, host: string): { readonly what: string; readonly hint: string } {
  const unchecked = `to do without the check, ${forHost('--insecure', 'insecure', host)}`;
  const show = `write \`registries: {${JSON.stringify(host)}: {certFile: FILE, keyFile: FILE}}\` into a file and name it with --config FILE, or put NAME.cert and NAME.key into ~/.docker/certs.d/${host}`;
  const alert = alertOf(error) ?? '';
  if (WANTS_CERTIFICATE.test(alert)) {
    return {
      what: 'it broke off the handshake, as a host does that wants a client certificate',
      hint: `To show one, ${show}.`,
    };
  }
  if (REFUSES_CERTIFICATE.test(alert)) {
    return { what: 'it does not accept our client certificate', hint: `Show one that it accepts: ${show}.` };
  }
  if (alert !== '') {
    return { what: 'it broke off the TLS handshake', hint: 'Check which TLS versions and ciphers it takes.' };
  }
  if (OTHER_NAME.includes(failureCode(error))) {
    const hint = `Use a name that the certificate is for; ${unchecked}.`;
    return { what: 'its certificate is for another name', hint };
  }
  const hint = `Trust its authority with --ca-file FILE, which is for all registries; ${unchecked}.`;
  return { what: 'its certificate was not accepted', hint };
}

/** The flags are for one registry; a text to be pasted for the others, sources above all. */
function forHost(flag: string, key: 'plainHttp' | 'insecure', host: string): string {
  const file = `registries: {${JSON.stringify(host)}: {${key}: true}}`;
  return `pass ${flag} (it is for the registry named first), or for another one write \`${file}\` into a file and name it with --config FILE`;
}

/** What nobody waits for is not asked for while the host has had enough. */
export function leftAlone(host: string): PublishError {
  return new PublishError('RATE_LIMITED', `${host} wants to be left alone`, 'Run the same command again later.', {
    registry: host,
  });
}
