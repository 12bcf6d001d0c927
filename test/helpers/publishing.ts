import { setMaxListeners } from 'node:events';
import { expect } from 'vitest';
import { createSecrets } from '../../src/auth/secrets.ts';
import { connect } from '../../src/cli/connect.ts';
import { SYSTEM_CLOCK } from '../../src/cli/runtime.ts';
import { DEFAULT_NETWORK, type NetworkSettings } from '../../src/cli/settings.ts';
import { parseReference, withTag } from '../../src/model/reference.ts';
import type { PublishEvent } from '../../src/publish/events.ts';
import type { Clock, PublishPorts } from '../../src/publish/ports.ts';
import { publish } from '../../src/publish/publish.ts';
import { type ListsOptions, publishLists } from '../../src/publish/publish-lists.ts';
import type { PublishReport } from '../../src/publish/report.ts';
import type { PublishRequest } from '../../src/publish/request.ts';
import { parseSource } from '../../src/publish/source.ts';
import type { Operation, RunningRegistry, SeededImage } from '../../src/registry-server/index.ts';
import { errorDocument } from '../../src/ui/render.ts';
import { type Secret, violations } from './invariants.ts';
import { type Ending, loginText, STRANGER, startWatching, withSockets } from './watching.ts';

/** What a test may say of a publish; the rest is as the command line has it without flags. */
export type PublishOptions = Partial<Omit<PublishRequest, 'targets' | 'sources'>> & {
  readonly tags?: readonly string[];
  /** Further targets, in full. */
  readonly also?: readonly string[];
  readonly network?: Partial<Omit<NetworkSettings, 'timeout'>>;
  /** Passwords of the user `robot` by host. */
  readonly logins?: Readonly<Record<string, string>>;
  /** Replaces the clock, so that waits take no time. */
  readonly patient?: boolean;
  /** Everybody's clock: the transport's, the client's and policy's. */
  readonly clock?: Clock;
  /** With `patient`: told of every wait of policy, in ms; whoever keeps time for the registry can turn it on. */
  readonly onSleep?: (milliseconds: number) => void;
  readonly onEvent?: (event: PublishEvent) => void;
};

const LAYOUT_LOCKS = new Set<string>();

/** A request as the command line would make it. */
export function requestOf(target: string, sources: readonly string[], options: PublishOptions = {}): PublishRequest {
  const reference = parseReference(target);
  const {
    tags = [],
    also = [],
    network: _network,
    patient: _patient,
    clock: _clock,
    onSleep: _s,
    onEvent: _e,
    logins: _l,
    ...fields
  } = options;
  return {
    targets: [reference, ...tags.map((tag) => withTag(reference, tag)), ...also.map(parseReference)],
    sources: sources.map((text) => parseSource(text, reference)),
    type: 'auto',
    annotations: {},
    layout: 'plain',
    platforms: [],
    forcePlatform: false,
    foreignLayers: false,
    waitForSource: 0,
    dryRun: false,
    verify: true,
    ...fields,
  };
}

/** What {@link withPorts} may be told. */
export type PortOptions = Pick<PublishOptions, 'network' | 'patient' | 'clock' | 'onSleep' | 'onEvent' | 'logins'>;

/**
 * Runs something with the real ports of the program, away from the user's environment, and closes them. Afterwards it
 * has connected to loopback alone, has left no socket open, and has told nobody's password.
 */
export function withPorts<T>(
  options: PortOptions,
  use: (ports: PublishPorts, signal: AbortSignal) => Promise<T>,
  registries: readonly RunningRegistry[] = [],
): Promise<T> {
  return withSockets(async (sockets) => {
    const watching = startWatching(registries, sockets);
    const told: unknown[] = [];
    const login = {
      env: { DOCKER_AUTH_CONFIG: loginText(options.logins) },
      platform: 'linux' as const,
      home: () => '/nonexistent',
    };
    const observer = {
      emit: (event: PublishEvent) => {
        told.push(event);
        options.onEvent?.(event);
      },
      http: (event: unknown) => void told.push(event),
    };
    const writer = { pid: process.pid, host: 'test', isAlive: () => true, own: LAYOUT_LOCKS };
    const time = options.clock ?? SYSTEM_CLOCK;
    const surroundings = { env: {}, clock: time, random: Math.random, secrets: createSecrets(), writer };
    const connections = await connect({ ...DEFAULT_NETWORK, ...options.network }, observer, surroundings, login);
    const sleep = async (milliseconds: number): Promise<void> => options.onSleep?.(milliseconds);
    const clock = options.patient === true ? { ...SYSTEM_CLOCK, sleep } : time;
    const controller = new AbortController();
    setMaxListeners(0, controller.signal);
    let ended: { readonly value: T } | { readonly error: unknown };
    try {
      ended = { value: await use({ ...connections.ports, clock }, controller.signal) };
    } catch (error) {
      ended = { error };
    }
    await connections.close();
    await sockets.settled();
    watching.check({ ...endingOf(ended, told), secrets: secretsOf(options.logins) });
    if ('error' in ended) throw ended.error;
    return ended.value;
  });
}

/** Every login that a run of tests holds, and whose it is. */
export function secretsOf(logins: Readonly<Record<string, string>> = {}): readonly Secret[] {
  const stranger: Secret = { host: STRANGER.host, text: STRANGER.password };
  return [stranger, ...Object.entries(logins).map(([host, text]) => ({ host, text }))];
}

/** What a run in this process came to, as the program would tell it. */
export function endingOf(
  ended: { readonly value: unknown } | { readonly error: unknown },
  told: readonly unknown[] = [],
): Ending {
  const events = told.map((event) => JSON.stringify(event)).join('\n');
  if ('error' in ended) {
    const document = errorDocument(ended.error);
    const outputs = { events, error: JSON.stringify(document), stack: String(Object(ended.error).stack) };
    return { exitCode: document.error.exitCode, printed: [], outputs };
  }
  const { value } = ended;
  const printed = isReport(value) && value.dryRun !== true ? digestsOf(value) : [];
  return { exitCode: 0, printed, outputs: { events, result: JSON.stringify(value) ?? '' } };
}

function digestsOf(report: PublishReport): readonly string[] {
  return report.lists.flatMap(({ targets }) =>
    // What is written to a layout no registry sees.
    targets.flatMap((target) =>
      target.action === 'failed' || target.reference.startsWith('oci:') ? [] : [target.digest],
    ),
  );
}

function isReport(value: unknown): value is PublishReport {
  return typeof value === 'object' && value !== null && 'schemaVersion' in value && 'lists' in value;
}

/**
 * Publishes and asserts what must hold of every run, good or bad (test/helpers/invariants.ts): a tag moved only to an
 * index that was complete at that moment, once at most, no session was left open, nothing secret was told.
 */
export async function publishTo(
  registry: RunningRegistry,
  target: string,
  sources: readonly string[],
  options: PublishOptions = {},
): Promise<PublishReport> {
  const full = (text: string): string =>
    /^[^/]*[.:][^/]*\//.test(text) || text.startsWith('sha256:') ? text : withHost(registry, text);
  return withPorts(
    options,
    (ports, signal) => publish(requestOf(full(target), sources.map(full), options), ports, signal),
    [registry],
  );
}

/** Publishes lists in one run, as {@link publishTo} does one, and asserts the same of every registry. */
export async function publishAll(
  registries: readonly RunningRegistry[],
  requests: readonly PublishRequest[],
  options: PortOptions & ListsOptions & { readonly onStart?: (stop: (reason: unknown) => void) => void } = {},
): Promise<PublishReport> {
  const run = (ports: PublishPorts, signal: AbortSignal): Promise<PublishReport> => {
    const controller = new AbortController();
    options.onStart?.((reason) => controller.abort(reason));
    return publishLists(requests, ports, AbortSignal.any([signal, controller.signal]), options);
  };
  return withPorts(options, run, registries);
}

function withHost(registry: RunningRegistry, text: string): string {
  const [platform, reference] = text.includes('=') ? text.split('=') : ['', text];
  return `${platform === '' ? '' : `${platform}=`}${registry.host}/${reference}`;
}

/** What must hold of every run, as far as the registry saw it: for runs that go another way than by {@link publishTo}. */
export function checkInvariants(registry: RunningRegistry, since = 0): void {
  const { host, tagOf, manifestOf, journal } = registry;
  const tagMoves = registry.tagMoves.slice(since);
  const nothing = { exitCode: 1, printed: [], outputs: {}, secrets: [], connected: [], openSockets: 0, lingered: 0 };
  const seen = { host, tagOf, manifestOf, journal, tagMoves, sessions: registry.openSessions() };
  expect(violations({ ...nothing, registries: [seen], alone: true })).toEqual([]);
}

/**
 * N8: the same run again succeeds, gives the same digest, and sends no blob body for a blob that was there. To be asked
 * after a run that failed or was killed; it costs a run, so that not every test asks it.
 */
export async function rerunConverges(
  registry: RunningRegistry,
  repository: string,
  again: () => Promise<string>,
  expected?: string,
): Promise<string> {
  const last = registry.journal.at(-1)?.start ?? 0;
  const there = new Set(blobsNamed(registry).filter((digest) => registry.hasBlob(repository, digest)));
  const digest = await again();
  if (expected !== undefined) expect(digest, 'N8: the digest of the run before').toBe(expected);
  const uploads = registry.journal.filter(({ start, operation }) => start > last && UPLOADS.includes(operation));
  // A chunk does not say of which blob it is; the PUT that closes its session does.
  const withBytes = new Set(uploads.filter(({ bytesIn }) => bytesIn > 0).map(({ reference }) => reference));
  const sent = uploads.filter(({ reference }) => withBytes.has(reference)).flatMap(({ query }) => digestsIn(query));
  expect(
    sent.filter((one) => there.has(one)),
    'N8: blobs were sent again that were there',
  ).toEqual([]);
  return digest;
}

const UPLOADS: readonly Operation[] = ['uploadPost', 'uploadPatch', 'uploadPut'];

function digestsIn(query: string): readonly string[] {
  const all = [...new URLSearchParams(query)].filter(([name]) => name === 'digest' || name === 'mount');
  return all.map(([, digest]) => digest);
}

/** Every blob that was spoken of, or that a manifest below some tag names. */
function blobsNamed(registry: RunningRegistry): readonly string[] {
  const below = (repository: string, reference: string): readonly string[] => {
    const { config, layers, manifests } = JSON.parse(
      registry.manifestOf(repository, reference)?.bytes.toString() ?? '{}',
    ) as { config?: Named; layers?: readonly Named[]; manifests?: readonly Named[] };
    const own = [...(config === undefined ? [] : [config]), ...(layers ?? [])].map(({ digest }) => digest);
    return [...own, ...(manifests ?? []).flatMap((child) => below(repository, child.digest))];
  };
  const tagged = registry
    .repositories()
    .flatMap((repository) => registry.tags(repository).flatMap((tag) => below(repository, tag)));
  return [...new Set([...tagged, ...registry.journal.flatMap(({ query }) => digestsIn(query))])];
}

type Named = { readonly digest: string };

/** How often each kind of request came. */
export function counts(registry: RunningRegistry): Partial<Record<Operation, number>> {
  const sums: Partial<Record<Operation, number>> = {};
  for (const { operation } of registry.journal) sums[operation] = (sums[operation] ?? 0) + 1;
  return sums;
}

/** What was seeded, as sources. */
export function sourcesOf(images: readonly SeededImage[]): readonly string[] {
  return images.map(({ repository, tag }) => `${repository}:${tag}`);
}
