import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { BenchError } from './errors.ts';
import type { Finder } from './tools.ts';

/** @see startRegistry */
export type RunningRegistry = {
  /** For the report, for example `docker-registry 2.8.2`. */
  readonly title: string;
  readonly port: number;
  readonly origin: string;
  /** False: a blob of one repository is in all of them, so that nothing is ever copied and request counts differ. */
  readonly separatesRepositories: boolean;
  close(): Promise<void>;
};

type Kind = {
  readonly title: string;
  readonly binaries: readonly string[];
  readonly version: readonly string[];
  readonly separatesRepositories: boolean;
  command(binary: string, port: number, folder: string): Promise<readonly string[]>;
};

/** distribution as `go install` names it and as the peers lane does, then Debian's package of its older version. */
const DISTRIBUTIONS: readonly (readonly [title: string, ...binaries: string[]])[] = [
  ['distribution', 'distribution-v3', 'registry'],
  ['docker-registry', 'docker-registry'],
];

const KINDS: readonly Kind[] = [
  ...DISTRIBUTIONS.map(
    ([title, ...binaries]): Kind => ({
      title,
      binaries,
      version: ['--version'],
      separatesRepositories: true,
      command: async (binary, port, folder) => {
        const file = join(folder, 'registry.yml');
        await writeFile(file, distributionConfig(port, join(folder, 'registry')));
        return [binary, 'serve', file];
      },
    }),
  ),
  {
    title: 'crane registry serve',
    binaries: ['crane'],
    version: ['version'],
    separatesRepositories: false,
    command: async (binary, port, folder) => {
      const disk = join(folder, 'registry');
      await mkdir(disk);
      return [binary, 'registry', 'serve', '--address', `127.0.0.1:${port}`, '--disk', disk];
    },
  },
];

/** Starts the first registry that is installed, with its storage below `folder`. */
export async function startRegistry(find: Finder, folder: string): Promise<RunningRegistry> {
  for (const kind of KINDS) {
    const tool = await find(kind.binaries, kind.version);
    if (tool === undefined) continue;
    const port = await freePort();
    const [command = '', ...args] = await kind.command(tool.path, port, folder);
    const child = spawn(command, args, { stdio: 'ignore', env: { HOME: folder } });
    const origin = `http://127.0.0.1:${port}`;
    await untilReady(child, origin);
    const title = [kind.title, tool.version].filter((part) => part !== undefined).join(' ');
    const close = () => stop(child);
    return { title, port, origin, separatesRepositories: kind.separatesRepositories, close };
  }
  throw new BenchError(
    'no registry to measure against: install distribution (go install), docker-registry (Debian) or crane',
  );
}

function distributionConfig(port: number, storage: string): string {
  return `version: 0.1
log: { level: error, accesslog: { disabled: true } }
storage:
  filesystem: { rootdirectory: ${JSON.stringify(storage)} }
  cache: { blobdescriptor: inmemory }
  delete: { enabled: true }
http: { addr: "127.0.0.1:${port}", secret: bench }
`;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function untilReady(child: ChildProcess, origin: string): Promise<void> {
  for (let tries = 0; tries < 200; tries += 1) {
    if (child.exitCode !== null) throw new Error(`the registry ended with ${child.exitCode}`);
    const answer = await fetch(`${origin}/v2/`).catch(() => undefined); // not listening yet
    if (answer?.ok === true) return;
    await sleep(50);
  }
  await stop(child);
  throw new Error('the registry did not answer within 10 seconds');
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL'); // its storage is thrown away
  await gone;
}
