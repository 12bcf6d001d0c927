import { PublishError } from '../errors.ts';
import { type AddressClass, classifyAddress } from './address.ts';
import { type Endpoint, isLoopbackName } from './endpoint.ts';

export { type Credential, Secret } from './credential.ts';

/**
 * Where a host lies that a registry names, besides the internet: what the user typed may be anywhere; what an answer
 * names may lie only where the registry that gave the answer lies too, or a public registry could make us talk to the
 * user's network, and a tunnel on this machine (`kubectl port-forward`) let the registry behind it do so.
 */
export type Reach = 'public' | 'private' | 'loopback' | 'private and loopback';

const ALLOWED: Readonly<Record<Reach, readonly AddressClass[]>> = {
  public: ['public'],
  private: ['public', 'private'],
  loopback: ['public', 'loopback'],
  'private and loopback': ['public', 'private', 'loopback'],
};

/** Names of metadata services: behind a proxy no name is resolved here, so these are known by heart. */
const METADATA_NAMES: ReadonlySet<string> = new Set(['metadata.google.internal', 'metadata']);

/** Where the registry itself has been found to lie in this run. */
export function reachOf({ found }: Endpoint): Reach {
  if (found.has('loopback')) return found.has('private') ? 'private and loopback' : 'loopback';
  return found.has('private') ? 'private' : 'public';
}

/** Why this address may not be connected to; undefined when it may. */
export function refusedAddress(address: string, reach: Reach): string | undefined {
  const kind = classifyAddress(address);
  if (kind === undefined) return `${address} is not an IP address`;
  return refusedClass(kind, address, reach);
}

function refusedClass(kind: AddressClass, name: string, reach: Reach): string | undefined {
  if (kind === 'forbidden') return `${name} is a link-local, metadata or reserved address`;
  return ALLOWED[reach].includes(kind) ? undefined : `${name} is a ${kind} address`;
}

/** Who named a URL, and how: what {@link checkNamedUrl} decides by. */
export type Naming = {
  /** The registry as the user knows it. */
  readonly registry: string;
  readonly reach: Reach;
  /** The scheme over which the URL was named: what came over https may not lead to http. */
  readonly scheme: string;
};

/**
 * Whether an address that a registry named (realm, Location, redirect) may be asked at all. Literal addresses are
 * judged here, since they are never looked up; names are judged by what they resolve to, while connecting.
 *
 * @throws PublishError `ORIGIN_REFUSED`
 * @see CVE-2020-15157, CVE-2026-33540, GHSA-jxpm-75mh-9fp7: registries that send their clients elsewhere
 */
export function checkNamedUrl(url: URL, naming: Naming): void {
  const why = refusedUrl(url, naming);
  if (why !== undefined) throw originRefused(url, naming.registry, why);
}

function refusedUrl(url: URL, { reach, scheme }: Naming): string | undefined {
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return `${url.protocol} is not spoken here`;
  if (url.username !== '' || url.password !== '') return 'it carries a user name';
  if (url.protocol === 'http:' && scheme === 'https:') return 'it leads from https to http';
  const hostname = plainHostname(url);
  const kind = isLoopbackName(hostname) ? 'loopback' : classifyAddress(hostname);
  if (kind !== undefined) return refusedClass(kind, hostname, reach);
  if (hostname === '' || METADATA_NAMES.has(hostname)) return 'it is a metadata service';
  return undefined;
}

/** Names are compared without the dot that marks them as complete. */
function plainHostname(url: URL): string {
  return url.hostname.replace(/\.+$/, '');
}

/** The refusal of an address, with nothing of its path or query, which may be secret. */
export function originRefused(url: URL, registry: string, why: string): PublishError {
  return new PublishError(
    'ORIGIN_REFUSED',
    `${registry} names ${url.protocol}//${url.host}, which is refused: ${why}`,
    "Ask the registry's operator why it names this address; nothing was sent there.",
    { registry },
  );
}
