import { isIP, type Socket } from 'node:net';
import type { SecureContext } from 'node:tls';
import { domainToASCII } from 'node:url';
import { PublishError } from '../errors.ts';
import { parseUrl } from '../model/url.ts';
import { classifyAddress, isInRange } from './address.ts';
import { Secret } from './credential.ts';
import { isLoopbackName } from './endpoint.ts';
import { failureCode, failureKind } from './failure.ts';
import { checkIdentity } from './server-identity.ts';

/** A proxy as the environment names it. */
export type ProxyServer = {
  /** Scheme, host and port, nothing else. */
  readonly url: URL;
  /** Value of `Proxy-Authorization`. */
  readonly login: Secret | undefined;
};

/** The proxy for a URL; undefined for none. */
export type ProxyRule = (url: URL) => ProxyServer | undefined;

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`, in capitals or not, as Go reads them: so that whoever has set them for
 * docker has set them for us.
 *
 * @throws PublishError `CONFIG_INVALID` for a proxy that is neither http nor https
 * @see https://pkg.go.dev/golang.org/x/net/http/httpproxy#Config
 */
export function createProxyRule(env: Environment): ProxyRule {
  const read = (name: string) => env[name] || env[name.toLowerCase()] || undefined;
  const secure = parseProxy('HTTPS_PROXY', read('HTTPS_PROXY'));
  // In a CGI program, HTTP_PROXY is what the client sent as its header "Proxy".
  const plain = env['REQUEST_METHOD'] === undefined ? parseProxy('HTTP_PROXY', read('HTTP_PROXY')) : undefined;
  const exceptions = (read('NO_PROXY') ?? '')
    .split(',')
    .map(parseException)
    .filter((matches) => matches !== undefined);
  return (url) => {
    const proxy = url.protocol === 'https:' ? secure : plain;
    if (proxy === undefined || isLoopbackName(url.hostname)) return undefined;
    const target = {
      host: url.hostname
        .toLowerCase()
        .replace(/^\[(.*)\]$/, '$1')
        .replace(/\.$/, ''),
      port: portOf(url),
    };
    return exceptions.some((matches) => matches(target)) ? undefined : proxy;
  };
}

/** The port, spelled out. */
export function portOf({ protocol, port }: URL): string {
  if (port !== '') return port;
  return protocol === 'https:' ? '443' : '80';
}

function parseProxy(name: string, text: string | undefined): ProxyServer | undefined {
  if (text === undefined) return undefined;
  const full = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`;
  const url = parseUrl(full);
  const login = url === undefined ? undefined : loginOf(url);
  if (url === undefined || login === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    // The text is not quoted: it may hold a password.
    throw new PublishError(
      'CONFIG_INVALID',
      `${name} names no http or https proxy`,
      `Set ${name}=http://HOST:PORT; socks proxies are not supported.`,
    );
  }
  return {
    url: new URL(url.origin),
    login: login === ':' ? undefined : new Secret(`Basic ${Buffer.from(login).toString('base64')}`),
  };
}

/** `user:password`; undefined when it is encoded wrongly. */
function loginOf({ username, password }: URL): string | undefined {
  try {
    return `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  } catch (error) {
    if (error instanceof URIError) return undefined;
    throw error;
  }
}

type Target = { readonly host: string; readonly port: string };
type Exception = (target: Target) => boolean;

/** One entry of `NO_PROXY`: `*`, an address, a range, a name with all names below it, each with a port if so wished. */
function parseException(text: string): Exception | undefined {
  const entry = text.trim().toLowerCase();
  if (entry === '') return undefined;
  if (entry === '*') return () => true;
  if (entry.includes('/')) {
    const [prefix = '', bits = ''] = entry.split('/');
    const most = isIP(prefix) === 4 ? 32 : 128;
    return isIP(prefix) !== 0 && /^\d{1,3}$/.test(bits) && Number(bits) <= most
      ? ({ host }) => isInRange(host, prefix, Number(bits))
      : undefined;
  }
  const [, bracketed, bare, port] = /^(?:\[(.*)\]|([^:]*|[^:]*:[^:]*:.*))(?::(\d+))?$/.exec(entry) ?? [];
  const name = bracketed ?? bare ?? '';
  const portMatches = (target: Target) => port === undefined || port === target.port;
  if (classifyAddress(name) !== undefined) {
    const bits = isIP(name) === 4 ? 32 : 128;
    return (target) => portMatches(target) && isInRange(target.host, name, bits);
  }
  const domain = domainToASCII(name.replace(/^\*(?=\.)/, ''));
  if (domain === '' || domain === '.') return undefined;
  const below = domain.startsWith('.') ? domain : `.${domain}`;
  // An address has digits behind its dots, not domains.
  return (target) =>
    isIP(target.host) === 0 && portMatches(target) && (target.host.endsWith(below) || target.host === domain);
}

/** How a tunnel is opened. */
export type TunnelOptions = {
  /** In ms. */
  readonly timeout: number;
  readonly secureContext: SecureContext | undefined;
};

/**
 * Asks the proxy for a tunnel to `target` (host and port).
 *
 * @throws an error with the code `PROXY_REFUSED`, or `PROXY_FAILED` when asking again may help
 * @see RFC 9110, section 9.3.6
 */
export async function openTunnel(proxy: ProxyServer, target: string, options: TunnelOptions): Promise<Socket> {
  const { protocol, hostname } = proxy.url;
  const http = await (protocol === 'https:' ? import('node:https') : import('node:http'));
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  return new Promise((resolve, reject) => {
    const request = http.request({
      method: 'CONNECT',
      host,
      // Or node would check the proxy's certificate for the name in the Host header.
      servername: isIP(host) === 0 ? host : '',
      port: portOf(proxy.url),
      path: target,
      headers: { host: target, ...(proxy.login === undefined ? {} : { 'proxy-authorization': proxy.login.reveal() }) },
      agent: false,
      checkServerIdentity: checkIdentity,
      timeout: options.timeout,
      ...(options.secureContext === undefined ? {} : { secureContext: options.secureContext }),
    });
    request.on('timeout', () => request.destroy(Object.assign(new Error('timeout'), { code: 'ETIMEDOUT' })));
    request.on('error', (error) => reject(ofProxy(error)));
    request.on('connect', ({ statusCode = 0 }, socket: Socket) => {
      if (statusCode >= 200 && statusCode < 300) {
        socket.setTimeout(0);
        resolve(socket);
        return;
      }
      socket.destroy();
      reject(proxyRefused(statusCode));
    });
    request.on('response', (response) => {
      response.destroy();
      reject(proxyRefused(response.statusCode ?? 0));
    });
    request.end();
  });
}

/** A failure to speak TLS with the proxy, told apart from one with the host behind it; others are the same for both. */
export function ofProxy(error: Error): Error {
  if (!['tls', 'not-tls'].includes(failureKind(error))) return error;
  return Object.assign(new Error(error.message, { cause: error }), {
    code: 'PROXY_TLS_FAILED',
    status: failureCode(error),
  });
}

/** The failure of a proxy that answers for itself. */
export function proxyRefused(status: number): Error {
  const code = status >= 500 ? 'PROXY_FAILED' : 'PROXY_REFUSED';
  return Object.assign(new Error(`the proxy answered ${status}`), { code, status });
}
