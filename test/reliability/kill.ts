import { startProgram } from './child.ts';
import type { Gate, Passing } from './gate.ts';

/** Where a run is ended: at the request of this number, or at the PUT of the tag; on its way, or on its answer's. */
export type Boundary = {
  readonly at: number | 'tag';
  readonly when: 'before' | 'after';
  readonly signal: 'SIGKILL' | 'SIGINT';
};

/** What is published, and how to look at the registry without the program. */
export type Scene = {
  readonly gate: Gate;
  readonly folder: string;
  /** Arguments of `publish`. */
  readonly args: readonly string[];
  readonly repository: string;
  readonly tag: string;
  /** Digests that the tag may hold: before and after. */
  readonly old: string | undefined;
  readonly list: string;
  readonly held: () => Promise<string | undefined>;
  /** Digests of blobs in the target. */
  readonly blobs: () => Promise<ReadonlySet<string>>;
  /** Manifests and blobs that the tag reaches and that are not there. */
  readonly missing: () => Promise<readonly string[]>;
  /** Upload sessions that are open; undefined where that cannot be seen. */
  readonly sessions: () => number | undefined;
};

/** Ends one run there, runs the same command again, and tells what was not as promised. */
export async function killAt(boundary: Boundary, scene: Scene): Promise<readonly string[]> {
  const { gate, folder, args } = scene;
  const problems: string[] = [];
  let reached = false;
  let ended: ReturnType<typeof startProgram>['ended'] | undefined;
  const isIt = ({ number, method, path }: Passing) =>
    boundary.at === 'tag' ? method === 'PUT' && path.endsWith(`/manifests/${scene.tag}`) : number === boundary.at;
  gate.watch(async (passing, when) => {
    if (reached || when !== boundary.when || !isIt(passing)) return 'pass';
    reached = true;
    child.kill(boundary.signal);
    if (boundary.signal === 'SIGINT') return 'pass';
    await ended;
    return 'drop';
  });
  const running = startProgram(folder, ['publish', ...args]);
  const { child } = running;
  ended = running.ended;
  const { exitCode, stdout, stderr } = await ended;
  const held = await scene.held();
  if (!reached) problems.push(`there is no such request; exit ${exitCode}`);
  if (held !== scene.old && held !== scene.list) problems.push(`the tag holds ${held}`);
  if (held === scene.list) problems.push(...(await scene.missing()).map((one) => `the tag moved without ${one}`));
  if (boundary.signal === 'SIGINT') {
    // The last answer and the signal may cross.
    const crossed = exitCode === 0 && held === scene.list;
    if (exitCode !== 130 && !crossed) problems.push(`SIGINT ended it with ${exitCode}: ${stderr.slice(-500)}`);
    if (exitCode === 130 && !stderr.includes('INTERRUPTED (exit 130)')) problems.push(`it said ${stderr.slice(-500)}`);
    if (exitCode === 130 && stdout !== '') problems.push(`it printed ${stdout}`);
    if ((scene.sessions() ?? 0) > 0) problems.push(`${scene.sessions()} sessions were left open`);
  } else if (exitCode !== null && !(exitCode === 0 && held === scene.list)) problems.push(`it ended with ${exitCode}`);

  const before = await scene.blobs();
  gate.watch(() => 'pass');
  const again = await startProgram(folder, ['publish', ...args]).ended;
  if (again.exitCode !== 0) problems.push(`the next run ended with ${again.exitCode}: ${again.stderr.slice(-500)}`);
  if (again.stdout !== `${scene.list}\n`) problems.push(`the next run printed ${again.stdout}`);
  if ((await scene.held()) !== scene.list) problems.push(`after the next run the tag holds ${await scene.held()}`);
  problems.push(...(await scene.missing()).map((one) => `after the next run ${one} is missing`));
  const sent = gate.passed.filter(({ path, sent: bytes }) => path.includes('/blobs/uploads/') && bytes > 0);
  for (const { query } of sent) {
    if (before.has(query.get('digest') ?? '')) problems.push(`the next run sent ${query.get('digest')} again`);
  }
  return problems.map((problem) => `${boundary.signal} ${boundary.when} ${boundary.at}: ${problem}`);
}

/**
 * All boundaries of a run of so many requests, or a number of them: spread evenly, signals and sides in turn. The tag's
 * PUT is always among them, with both signals on both sides.
 */
export function boundariesOf(requests: number, most: number | 'all'): readonly Boundary[] {
  const sides = (['SIGKILL', 'SIGINT'] as const).flatMap((signal) =>
    (['before', 'after'] as const).map((when) => ({ signal, when })),
  );
  const all = Array.from({ length: requests }, (_, index) => index + 1);
  const tag = sides.map((side): Boundary => ({ at: 'tag', ...side }));
  if (most === 'all') return [...all.flatMap((at) => sides.map((side) => ({ at, ...side }))), ...tag];
  const few = Math.max(1, most - tag.length);
  const picked = Array.from({ length: few }, (_, index): Boundary => {
    const at = Math.min(requests, Math.round(((index + 0.5) * requests) / few) + 1);
    return { at, ...(sides[index % sides.length] ?? { signal: 'SIGKILL', when: 'before' }) };
  });
  return [...picked, ...tag];
}
