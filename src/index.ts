import {
  AMOUNT,
  BOOLEAN,
  checkOptions,
  checkReference,
  FUNCTION,
  OBJECT,
  SIGNAL,
  TEXT,
} from './cli/library-options.ts';
import { type PublishOptions, publishRequest } from './cli/request.ts';
import { createRuntime, type Runtime } from './cli/runtime.ts';
import { DEFAULT_NETWORK, type NetworkSettings } from './cli/settings.ts';
import { parseReference } from './model/reference.ts';
import type { PublishEvent } from './publish/events.ts';
import type { Inspection, Verification } from './publish/findings.ts';
import type { PublishReport } from './publish/report.ts';

// The door for programs: what the commands of the same names do, without a terminal. Errors are those of the command
// line: `PublishError` with `code`, `exitCode` and `hint`.

export type { PublishOptions } from './cli/request.ts';
export type { NetworkSettings } from './cli/settings.ts';
export { type ErrorCode, type ErrorSide, PublishError } from './errors.ts';
export type { Descriptor, Platform } from './model/descriptor.ts';
export type { Digest } from './model/digest.ts';
export type { PublishEvent } from './publish/events.ts';
export type { InspectedChild, Inspection, Verification } from './publish/findings.ts';
export type {
  BlobOutcome,
  ImageOutcome,
  ListReport,
  PublishReport,
  ReportTotals,
  TargetFailure,
  TargetOutcome,
} from './publish/report.ts';
export type { IndexType } from './publish/request.ts';

/** How a call is run. */
export type RunOptions = {
  /** Differences from the defaults of the command line. */
  readonly network?: Partial<NetworkSettings>;
  /** Ends the call; sessions that are open at a registry are cancelled first. */
  readonly signal?: AbortSignal;
  /** Told what happens, as it happens. */
  readonly onEvent?: (event: PublishEvent) => void;
};

/**
 * Reads and plans, and writes nothing: the report that {@link publish} would give, with `dryRun`.
 *
 * @throws PublishError
 */
export function planPublish(options: PublishOptions, run: RunOptions = {}): Promise<PublishReport> {
  return publish({ ...options, dryRun: true }, run);
}

/**
 * Publishes one index from images in other repositories; the tags move last, and only when everything is in place. They
 * may lie in several repositories and registries: one that fails does not stop another.
 *
 * @throws PublishError of the first target that failed; with several repositories its `report` is a {@link PublishReport}
 *   of what was done all the same
 */
export async function publish(options: PublishOptions, run: RunOptions = {}): Promise<PublishReport> {
  const request = publishRequest(options);
  checkRun('publish', run);
  const engine = await import('./publish/publish.ts');
  return withRuntime(run, async ({ ports, controller, notes }) => {
    const report = await engine.publish(request, ports, controller.signal);
    return { ...report, warnings: [...report.warnings, ...notes()] };
  });
}

/**
 * Reads one reference; with `tree` also the images below an index.
 *
 * @throws PublishError
 */
export async function inspect(
  reference: string,
  options: { readonly tree?: boolean } = {},
  run: RunOptions = {},
): Promise<Inspection> {
  checkReference('inspect', reference);
  checkOptions('the options of inspect', options, { tree: BOOLEAN });
  checkRun('inspect', run);
  const parsed = parseReference(reference);
  const engine = await import('./publish/inspect.ts');
  const tree = options.tree ?? false;
  return withRuntime(run, ({ ports, controller }) => engine.inspect(parsed, { tree }, ports, controller.signal));
}

/**
 * Checks that the registry has everything the reference needs; with `deep` every blob is downloaded and hashed. The
 * reference is good when `problems` is empty.
 *
 * @throws PublishError
 */
export async function verify(
  reference: string,
  options: { readonly deep?: boolean } = {},
  run: RunOptions = {},
): Promise<Verification> {
  checkReference('verify', reference);
  checkOptions('the options of verify', options, { deep: BOOLEAN });
  checkRun('verify', run);
  const parsed = parseReference(reference);
  const engine = await import('./publish/verify.ts');
  const deep = options.deep ?? false;
  return withRuntime(run, ({ ports, controller }) => engine.verify(parsed, { deep }, ports, controller.signal));
}

function checkRun(call: string, run: RunOptions): void {
  checkOptions(`the run options of ${call}`, run, { network: OBJECT, signal: SIGNAL, onEvent: FUNCTION });
  const kinds = { hosts: OBJECT, caFile: TEXT, jobs: AMOUNT, retries: AMOUNT, timeout: AMOUNT, uploadSizes: OBJECT };
  checkOptions(
    `the network options of ${call}`,
    run.network ?? {},
    kinds satisfies Record<keyof NetworkSettings, unknown>,
  );
}

async function withRuntime<T>(run: RunOptions, work: (runtime: Runtime) => Promise<T>): Promise<T> {
  const { network, signal, onEvent = () => undefined } = run;
  signal?.throwIfAborted();
  const runtime = await createRuntime({
    network: { ...DEFAULT_NETWORK, ...network },
    observer: { emit: onEvent, http: () => undefined },
  });
  const abort = () => runtime.controller.abort(signal?.reason);
  signal?.addEventListener('abort', abort, { once: true });
  try {
    return await work(runtime);
  } finally {
    signal?.removeEventListener('abort', abort);
    await runtime.close();
  }
}
