import type { PublishError } from '../errors.ts';
import { type AddressClass, classifyAddress } from './address.ts';

/** What the user said of one registry host. */
export type HostSettings = {
  /** No check of the certificate, and http when https is refused or not spoken. */
  readonly insecure?: boolean;
  /** http at once. */
  readonly plainHttp?: boolean;
  /** Certificate authorities to trust besides the usual ones, PEM. */
  readonly ca?: readonly string[];
  /** What we show of ourselves when the host asks for it (mutual TLS), PEM. */
  readonly clientCertificate?: { readonly cert: string; readonly key: string };
  /** What is wrong with what the user has laid down for this host; thrown when TLS is about to be spoken with it. */
  readonly problem?: PublishError;
};

export type Scheme = 'http:' | 'https:';

/** Docker Hub answers the API under another name than the one in references. */
const HUB = 'docker.io';
const HUB_API = 'registry-1.docker.io';
const HUB_NAMES: ReadonlySet<string> = new Set([HUB, 'index.docker.io', HUB_API]);

/** One name for all spellings of a host: lower case, `docker.io` for Docker Hub, no default port. */
export function canonicalHost(host: string): string {
  return hostName(host.replace(/:(?:80|443)$/, ''));
}

/** The same with its port: what is said of `host:80` is not said of `host`. */
function hostName(host: string): string {
  const name = host.toLowerCase();
  return HUB_NAMES.has(name) ? HUB : name;
}

/** Whether the host means this machine, by its spelling alone. */
export function isLoopbackName(hostname: string): boolean {
  const name = hostname.toLowerCase().replace(/\.$/, '');
  return name === 'localhost' || name.endsWith('.localhost') || classifyAddress(name) === 'loopback';
}

/** A registry host that the user named, and how it is spoken to. */
export interface Endpoint {
  /** As the user knows it, for example `docker.io`. */
  readonly host: string;
  readonly settings: HostSettings;
  /** What is known or, until an answer came, tried first. */
  readonly scheme: Scheme;
  /** What is tried when {@link Endpoint.scheme} turns out not to be spoken; undefined once that is settled. */
  readonly alternative: Scheme | undefined;
  /** Whether the user spelled out a port, so that both schemes would be tried on the same one. */
  readonly hasPort: boolean;
  /** Kinds of addresses that the host has been found at in this run. */
  readonly found: ReadonlySet<AddressClass>;
  base(scheme?: Scheme): URL;
  /** The same resource by that scheme. */
  rewrite(url: URL, scheme?: Scheme): URL;
  settle(scheme: Scheme): void;
  foundAt(kind: AddressClass): void;
}

/** The hosts of this run; what is learnt of one is known to all requests that follow. */
export interface Endpoints {
  of(host: string): Endpoint;
  /** The endpoint whose {@link Endpoint.base} the URL was built from. */
  ofUrl(url: URL): Endpoint;
}

/** @param settings by host as the user knows it */
export function createEndpoints(settings: Readonly<Record<string, HostSettings>>): Endpoints {
  const said = new Map(Object.entries(settings).map(([host, value]) => [hostName(host), value]));
  const byHost = new Map<string, Endpoint>();
  const byOrigin = new Map<string, Endpoint>();

  function of(host: string): Endpoint {
    const known = byHost.get(host.toLowerCase());
    if (known !== undefined) return known;
    const endpoint = createEndpoint(host, said.get(hostName(host)) ?? {});
    byHost.set(host.toLowerCase(), endpoint);
    for (const scheme of ['http:', 'https:'] as const) {
      const { origin } = endpoint.base(scheme);
      if (!byOrigin.has(origin)) byOrigin.set(origin, endpoint);
    }
    return endpoint;
  }

  return { of, ofUrl: (url) => byOrigin.get(url.origin) ?? of(url.host) };
}

function createEndpoint(host: string, settings: HostSettings): Endpoint {
  const isHub = canonicalHost(host) === HUB;
  const api = isHub ? HUB_API : host.toLowerCase();
  const { hostname } = new URL(`http://${api}/`);
  const order = schemeOrder(hostname, settings);
  let scheme: Scheme = order[0];
  let alternative: Scheme | undefined = order[1];
  const found = new Set<AddressClass>();
  const literal = isLoopbackName(hostname) ? 'loopback' : classifyAddress(hostname);
  if (literal !== undefined) found.add(literal);

  const base = (wanted: Scheme = scheme) => new URL(`${wanted}//${api}/`);
  return {
    host: isHub ? HUB : host,
    settings,
    get scheme() {
      return scheme;
    },
    get alternative() {
      return alternative;
    },
    hasPort: /:\d+$/.test(api),
    found,
    base,
    rewrite(url, wanted = scheme) {
      if (url.protocol === wanted) return url;
      // Changing the protocol of the URL itself would lose a port that is the other scheme's default.
      const rewritten = base(wanted);
      rewritten.pathname = url.pathname;
      rewritten.search = url.search;
      return rewritten;
    },
    settle(spoken) {
      scheme = spoken;
      alternative = undefined;
    },
    foundAt: (kind) => {
      found.add(kind);
    },
  };
}

/** Registries on this machine speak http more often than not, as docker has it; the others https or nothing. */
function schemeOrder(hostname: string, settings: HostSettings): readonly [Scheme, Scheme?] {
  if (settings.plainHttp === true) return ['http:'];
  if (isLoopbackName(hostname)) return ['http:', 'https:'];
  return settings.insecure === true ? ['https:', 'http:'] : ['https:'];
}
