import { expect } from 'vitest';
import { createRuntime } from '../../src/cli/runtime.ts';
import { DEFAULT_NETWORK, type NetworkSettings } from '../../src/cli/settings.ts';
import { parseReference, withTag } from '../../src/model/reference.ts';
import type { PublishEvent } from '../../src/publish/events.ts';
import type { PublishPorts } from '../../src/publish/ports.ts';
import { publish } from '../../src/publish/publish.ts';
import type { PublishReport } from '../../src/publish/report.ts';
import type { PublishRequest } from '../../src/publish/request.ts';
import { parseSource } from '../../src/publish/source.ts';
import type { Operation, RunningRegistry, SeededImage } from '../../src/registry-server/index.ts';

/** What a test may say of a publish; the rest is as the command line has it without flags. */
export type PublishOptions = Partial<Omit<PublishRequest, 'targets' | 'sources'>> & {
  readonly tags?: readonly string[];
  readonly network?: Partial<NetworkSettings>;
  /** Replaces the clock, so that waits take no time. */
  readonly patient?: boolean;
  readonly onEvent?: (event: PublishEvent) => void;
};

/** A request as the command line would make it. */
export function requestOf(target: string, sources: readonly string[], options: PublishOptions = {}): PublishRequest {
  const reference = parseReference(target);
  const { tags = [], network: _network, patient: _patient, onEvent: _onEvent, ...fields } = options;
  return {
    targets: [reference, ...tags.map((tag) => withTag(reference, tag))],
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

/** Runs something with the real ports of the program, away from the user's environment, and closes them. */
export async function withPorts<T>(
  options: Pick<PublishOptions, 'network' | 'patient' | 'onEvent'>,
  use: (ports: PublishPorts, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const runtime = await createRuntime({
    isolated: true,
    network: { ...DEFAULT_NETWORK, ...options.network },
    observer: { emit: options.onEvent ?? (() => undefined), http: () => undefined },
  });
  const { clock } = runtime.ports;
  const ports =
    options.patient === true ? { ...runtime.ports, clock: { ...clock, sleep: async () => undefined } } : runtime.ports;
  try {
    return await use(ports, runtime.controller.signal);
  } finally {
    await runtime.close();
  }
}

/**
 * Publishes and asserts what must hold of every run, good or bad: a tag moved only to an index that was complete at
 * that moment, once at most, and no session was left open.
 */
export async function publishTo(
  registry: RunningRegistry,
  target: string,
  sources: readonly string[],
  options: PublishOptions = {},
): Promise<PublishReport> {
  const full = (text: string): string =>
    /^[^/]*[.:][^/]*\//.test(text) || text.startsWith('sha256:') ? text : withHost(registry, text);
  const moves = registry.tagMoves.length;
  try {
    return await withPorts(options, (ports, signal) =>
      publish(requestOf(full(target), sources.map(full), options), ports, signal),
    );
  } finally {
    checkInvariants(registry, moves);
  }
}

function withHost(registry: RunningRegistry, text: string): string {
  const [platform, reference] = text.includes('=') ? text.split('=') : ['', text];
  return `${platform === '' ? '' : `${platform}=`}${registry.host}/${reference}`;
}

/** N1, N2 and sessions, from what the registry saw. `since`: tag moves before the run. */
export function checkInvariants(registry: RunningRegistry, since = 0): void {
  const moves = registry.tagMoves.slice(since);
  for (const move of moves) expect(move.missing, `the tag ${move.tag} moved to something incomplete`).toEqual([]);
  // The same digest once more is no move: a PUT whose answer was lost is sent again.
  const names = moves.filter(({ from, to }) => from !== to).map((move) => `${move.repository}:${move.tag}`);
  expect(new Set(names).size, 'a tag moved twice').toBe(names.length);
  expect(registry.openSessions(), 'an upload session was left open').toBe(0);
}

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
