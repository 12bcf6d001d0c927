import { setTimeout as sleep } from 'node:timers/promises';
import { createSecrets } from '../../src/auth/secrets.ts';
import { connect } from '../../src/cli/connect.ts';
import { DEFAULT_NETWORK } from '../../src/cli/settings.ts';
import { PublishError } from '../../src/errors.ts';
import { publish } from '../../src/publish/publish.ts';
import type { PublishReport } from '../../src/publish/report.ts';
import type { RunningRegistry } from '../../src/registry-server/index.ts';
import { requestOf } from '../helpers/publishing.ts';

/** What a run came to: its report, or the code that the program would end with. */
export type Outcome =
  | { readonly kind: 'done'; readonly report: PublishReport }
  | {
      readonly kind: 'failed';
      readonly exitCode: number;
      readonly message: string;
      readonly repository: string | undefined;
    };

/**
 * One clock for client and registry. It runs `speed` times as fast as the world, so that rates and delays pass soon;
 * waits from `hurry` ms on are not shortened.
 */
export function fastClock(speed: number, hurry: number) {
  const start = Date.now();
  let ahead = 0;
  const epoch = (): number => start + (Date.now() - start) * speed;
  return {
    epoch,
    now: () => performance.now() * speed,
    sleep: async (milliseconds: number, signal: AbortSignal): Promise<void> => {
      signal.throwIfAborted();
      await sleep(milliseconds >= hurry ? milliseconds : milliseconds / speed, undefined, { signal }).catch((error) => {
        throw signal.aborted ? signal.reason : error;
      });
    },
    /** Lets the registry's clock jump, not the client's: its tokens are older than it thinks. */
    registry: () => epoch() + ahead,
    jump: (milliseconds: number) => {
      ahead += milliseconds;
    },
  };
}

export type Login = { readonly path: string; readonly name: string };

/** What is around one run: the logins, and the sizes on which uploads turn, made small like the registry's limits. */
export type Around = {
  readonly logins: readonly Login[];
  readonly scale: number;
  readonly clock: ReturnType<typeof fastClock>;
  readonly caFile?: string;
};

const MIB = 1024 * 1024;

/** Publishes with the ports of the program, away from the user's environment. */
export async function runPublish(
  registry: RunningRegistry,
  target: string,
  sources: readonly string[],
  around: Around,
): Promise<Outcome> {
  const auths = Object.fromEntries(
    around.logins.map(({ path, name }) => [
      `${registry.host}${path}`,
      { auth: Buffer.from(`${name}:secret`).toString('base64') },
    ]),
  );
  const size = (bytes: number): number => Math.ceil(bytes * around.scale);
  const network = {
    ...DEFAULT_NETWORK,
    uploadSizes: {
      chunk: size(5 * MIB),
      tooLarge: size(4 * MIB),
      least: size(MIB / 2),
      scout: size(MIB),
      uncut: size(MIB),
    },
    ...(around.caFile === undefined ? {} : { caFile: around.caFile }),
  };
  const login = {
    env: { DOCKER_AUTH_CONFIG: JSON.stringify({ auths }) },
    platform: 'linux' as const,
    home: () => '/nonexistent',
  };
  const surroundings = { env: {}, clock: around.clock, random: Math.random, secrets: createSecrets() };
  const observer = { emit: () => undefined, http: () => undefined };
  const { ports, close } = await connect(network, observer, surroundings, login);
  const full = (text: string): string => `${registry.host}/${text}`;
  try {
    const request = requestOf(full(target), sources.map(full));
    return { kind: 'done', report: await publish(request, ports, new AbortController().signal) };
  } catch (error) {
    if (!(error instanceof PublishError)) throw error;
    return {
      kind: 'failed',
      exitCode: error.exitCode,
      message: `${error.message} | ${error.hint}`,
      repository: error.repository,
    };
  } finally {
    await close();
  }
}
