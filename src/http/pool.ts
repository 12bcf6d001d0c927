import { type LookupAddress, lookup as systemLookup } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { createSecureContext, rootCertificates, type SecureContext } from 'node:tls';
import { buildConnector, Pool } from 'undici';
import type { PublishError } from '../errors.ts';
import { classifyAddress } from './address.ts';
import { type Ahead, openingAhead } from './ahead.ts';
import type { Endpoint, HostSettings } from './endpoint.ts';
import { createLoans } from './loans.ts';
import { originRefused, type Reach, reachOf, refusedAddress } from './origin.ts';
import { ofProxy, openTunnel, type ProxyRule, type ProxyServer, portOf, type TunnelOptions } from './proxy.ts';
import { type Connector, resuming } from './resume.ts';
import { checkIdentity } from './server-identity.ts';

/** @see createPools */
export type PoolOptions = {
  /** Certificate authorities to trust besides the system's, PEM, for all hosts. */
  readonly ca?: readonly string[];
  /** Longest wait for a connection in ms, TLS included. */
  readonly connectTimeout: number;
  /** Longest silence in a body in ms. */
  readonly bodyTimeout: number;
  /** Resolves names; the system's resolver by default. */
  readonly lookup?: LookupFunction;
  /**
   * Where to connect to instead, as curl's `--connect-to` has it; names are resolved and judged before it is asked.
   */
  readonly connectTo?: ConnectTo;
  /** Behind a proxy names are resolved by the proxy, so that only literal addresses can be judged. */
  readonly proxy?: ProxyRule;
};

/** @see PoolOptions.connectTo */
export type ConnectTo = (host: string, port: string) => { readonly host: string; readonly port: string } | undefined;

/**
 * Where a request goes: to the registry that the user named, or to an address that this registry named, which must
 * lie no nearer to the user than the registry itself.
 */
export type Destination = { readonly url: URL; readonly endpoint: Endpoint; readonly named: boolean };

/** How a destination is reached. */
export type Route = {
  readonly pool: Pool;
  /** What the path of the request line starts with: a proxy for plain http wants the whole address. */
  readonly prefix: string;
  /** For the proxy. */
  readonly headers: Readonly<Record<string, string>>;
  /** Host of the proxy. */
  readonly via: string | undefined;
};

/** Connections, kept open for the next request. */
export interface Pools {
  routeTo(destination: Destination): Route;
  /** A request there is certain: its connection is opened now. */
  openAhead(destination: Destination): void;
  /** Whoever has read a chunk of an answer, alone, will not look at it again. */
  giveBack(chunk: Uint8Array): void;
  close(): Promise<void>;
}

/** Every request in flight has a connection to itself: 64 of the limiter, and the few that take no place of it. */
const CONNECTIONS = 80;
/** As many as the limiter lets go at a time. */
const AHEAD = 64;
/** Registries, load balancers and storage close idle connections after a minute; some after 5 s, and say so. */
const KEEP_ALIVE = 15_000;
/** Largest header block of an answer in bytes. */
const HEADER_LIMIT = 16 * 1024;
/** Of one read, in bytes: as much as libuv reads at a time, and the largest record of TLS. */
const PLAIN_READ = 64 * 1024;
const TLS_READ = 16 * 1024;

/**
 * One pool for each origin and each set of rules under which its connections were made: a connection that was allowed
 * for a registry on this machine must not serve an address that a public registry names.
 */
export function createPools(options: PoolOptions): Pools {
  const pools = new Map<string, Pooled>();
  const contexts = new Map<string, SecureContext>();
  const loans = createLoans();
  const reading = { 'http:': loans.reading(PLAIN_READ), 'https:': loans.reading(TLS_READ) };
  /** What holds for all connections, whatever they lead to. */
  const always = ({ protocol }: URL) => ({
    timeout: options.connectTimeout,
    onread: reading[protocol === 'https:' ? 'https:' : 'http:'],
    checkServerIdentity: checkIdentity,
  });

  /** Made only where TLS will be spoken, and once: it takes 90 ms to read in all authorities, and 0.3 ms without. */
  function contextFor(url: URL, settings: HostSettings): SecureContext | undefined {
    if (url.protocol !== 'https:') return undefined;
    if (settings.problem !== undefined) throw settings.problem;
    const extra = [...(options.ca ?? []), ...(settings.ca ?? [])];
    const { clientCertificate } = settings;
    const key = [...extra, clientCertificate?.cert].join('\n');
    const context =
      contexts.get(key) ??
      createSecureContext({
        ...(extra.length === 0 ? {} : { ca: [...rootCertificates, ...extra] }),
        ...clientCertificate,
      });
    contexts.set(key, context);
    return context;
  }

  function createPool(destination: Destination, settings: HostSettings, proxy: ProxyServer | undefined): Pooled {
    const { url, endpoint, named } = destination;
    const secureContext = contextFor(url, settings);
    const connect = resuming({
      ...always(url),
      lookup: named ? checkingLookup(options, url, endpoint) : recordingLookup(options, endpoint),
      ...(secureContext === undefined ? {} : { secureContext }),
      ...(settings.insecure === true ? { rejectUnauthorized: false } : {}),
    });
    const { protocol, host, hostname, port } = url;
    const ahead = openingAhead(
      proxy === undefined
        ? redirected(options, connect, destination)
        : tunnelled(connect, proxy, { timeout: options.connectTimeout, secureContext: contextFor(proxy.url, {}) }),
      { protocol, host, hostname: hostname.replace(/^\[(.*)\]$/, '$1'), port },
    );
    return { pool: new Pool(url.origin, { connect: ahead.connect, ...keeping(options) }), ahead };
  }

  function pooled(key: string, create: () => Pooled): Pooled {
    const pool = pools.get(key) ?? create();
    pools.set(key, pool);
    return pool;
  }

  /** Where it leads, and the connections there; none to be opened ahead through a proxy that is handed whole requests. */
  function find(destination: Destination): Route & Pick<Pooled, 'ahead'> {
    const { url, endpoint, named } = destination;
    // Token servers and second ports of a host stand behind the same certificate as the registry.
    const settings = url.hostname === endpoint.base().hostname ? endpoint.settings : {};
    const rules = named ? reachOf(endpoint) : 'user';
    const proxy = options.proxy?.(url);
    if (proxy !== undefined && url.protocol === 'http:') {
      const { pool } = pooled(`proxy ${proxy.url.origin}`, () => {
        const secureContext = contextFor(proxy.url, {});
        const trust = secureContext === undefined ? {} : { secureContext };
        const connector = buildConnector({ ...always(proxy.url), ...trust });
        // The certificate is the proxy's, though the Host header is the registry's.
        const connect: Connector = (target, callback) =>
          connector({ ...target, servername: '' }, (...[error, socket]) =>
            error === null ? callback(null, socket) : callback(ofProxy(error), null),
          );
        return { pool: new Pool(proxy.url.origin, { connect, ...keeping(options) }), ahead: undefined };
      });
      const login = proxy.login === undefined ? {} : { 'proxy-authorization': proxy.login.reveal() };
      return { pool, prefix: url.origin, headers: { host: url.host, ...login }, via: proxy.url.host, ahead: undefined };
    }
    const { insecure, ca = [], clientCertificate } = settings;
    const key = [url.origin, rules, insecure === true, proxy?.url.origin, clientCertificate?.cert, ...ca].join(' ');
    const { pool, ahead } = pooled(key, () => createPool(destination, settings, proxy));
    return { pool, prefix: '', headers: {}, via: proxy?.url.host, ahead };
  }

  return {
    routeTo: find,
    openAhead(destination) {
      const { pool, ahead } = find(destination);
      // One that is free will do.
      if (pool.stats.free === 0 && (ahead?.unused() ?? AHEAD) < AHEAD) ahead?.open();
    },

    giveBack: loans.giveBack,

    async close() {
      const closing = [...pools.values()].map(({ pool, ahead }) => {
        ahead?.close();
        return pool.destroy();
      });
      pools.clear();
      await Promise.all(closing);
    },
  };
}

type Pooled = { readonly pool: Pool; readonly ahead: Ahead | undefined };

type Resolved = (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void;

/** Asks the resolver for all addresses, whichever form its caller wants them in. */
function resolve(options: PoolOptions, hostname: string, resolved: Resolved): void {
  const lookup = options.lookup ?? systemLookup;
  lookup(hostname, { all: true }, (error, addresses) => {
    resolved(
      error,
      Array.isArray(addresses) ? addresses : error === null ? [{ address: addresses, family: isIP(addresses) }] : [],
    );
  });
}

/** A resolver that hands its addresses to `judge`, which may refuse them by returning an error. */
function judgingLookup(
  options: PoolOptions,
  judge: (addresses: LookupAddress[]) => PublishError | undefined,
): LookupFunction {
  return (hostname, { all }, callback) => {
    resolve(options, hostname, (error, addresses) => {
      const first = addresses[0];
      const failure = error ?? (first === undefined ? noAddress(hostname) : judge(addresses));
      if (failure !== undefined || first === undefined) callback(failure ?? null, '', 0);
      else if (all === true) callback(null, addresses);
      else callback(null, first.address, first.family);
    });
  };
}

function noAddress(hostname: string): Error {
  return Object.assign(new Error(`getaddrinfo ENOTFOUND ${hostname}`), { code: 'ENOTFOUND' });
}

/** For the host that the user named: anything goes, and what was found decides what the host may name. */
function recordingLookup(options: PoolOptions, endpoint: Endpoint): LookupFunction {
  return judgingLookup(options, (addresses) => {
    for (const { address } of addresses) {
      const kind = classifyAddress(address);
      if (kind !== undefined) endpoint.foundAt(kind);
    }
    return undefined;
  });
}

/**
 * For what a registry named: the very addresses that will be connected to are judged, so that a name which resolves
 * differently each time gains nothing. One bad address spoils the name.
 */
function checkingLookup(options: PoolOptions, url: URL, endpoint: Endpoint): LookupFunction {
  // Fixed with the pool: its connections must not outlive the rule under which they were made.
  const reach: Reach = reachOf(endpoint);
  return judgingLookup(options, (addresses) => {
    for (const { address } of addresses) {
      const why = refusedAddress(address, reach);
      if (why !== undefined) return originRefused(url, endpoint.host, why);
    }
    return undefined;
  });
}

/** Resolves and judges the name as ever, then connects to where {@link PoolOptions.connectTo} points. */
function redirected(options: PoolOptions, connect: Connector, { url, endpoint, named }: Destination): Connector {
  const { connectTo } = options;
  if (connectTo === undefined) return connect;
  const lookup = named ? checkingLookup(options, url, endpoint) : recordingLookup(options, endpoint);
  return (target, callback) => {
    const go = () => {
      const other = connectTo(target.hostname, portOf(url));
      connect(other === undefined ? target : { ...target, hostname: other.host, port: other.port }, callback);
    };
    if (isIP(target.hostname) !== 0) go();
    else lookup(target.hostname, { all: true }, (error) => (error === null ? go() : callback(error, null)));
  };
}

/** Connects through a proxy; TLS is spoken with the registry, inside the tunnel. */
function tunnelled(connect: Connector, proxy: ProxyServer, options: TunnelOptions): Connector {
  return (target, callback) => {
    const { protocol, hostname, port } = target;
    const host = isIP(hostname) === 6 ? `[${hostname}]` : hostname;
    const place = `${host}:${port === '' ? (protocol === 'https:' ? 443 : 80) : port}`;
    openTunnel(proxy, place, options).then(
      (socket) =>
        protocol === 'https:' ? connect({ ...target, httpSocket: socket }, callback) : callback(null, socket),
      (error: Error) => callback(error, null),
    );
  };
}

/** What holds for all connections. */
function keeping({ bodyTimeout }: PoolOptions): Pool.Options {
  return {
    connections: CONNECTIONS,
    pipelining: 1,
    keepAliveTimeout: KEEP_ALIVE,
    maxHeaderSize: HEADER_LIMIT,
    bodyTimeout,
  };
}
