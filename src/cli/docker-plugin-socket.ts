import type { Environment } from './environment.ts';

/** Calls `tick` every so many milliseconds until the returned function is called; keeps no process alive. */
type Every = (milliseconds: number, tick: () => void) => () => void;

/** A terminal sends its SIGINT to us and to docker, which then closes the socket: ours is to be heard first. In ms. */
const SIGNAL_WITHIN = 100;

/** How often the system's list of sockets is looked at where we cannot connect, in ms. */
const LOOK_EVERY = 250;

/**
 * Calls `stop` when docker wants its plugin to end. A signal that reaches docker alone is told by a socket: a plugin
 * connects, and docker closes it. Keeps no process alive. Returns what ends the watching.
 *
 * @see https://github.com/docker/cli/blob/v28.2.2/cli-plugins/socket/socket.go
 */
export function whenDockerStops(env: Environment, stop: () => void, every: Every): () => void {
  const address = env['DOCKER_CLI_PLUGIN_SOCKET'];
  const watching = new AbortController();
  const { signal } = watching;
  const closed = (): void => {
    if (signal.aborted) return;
    const end = every(SIGNAL_WITHIN, () => {
      end();
      if (!signal.aborted) stop();
    });
  };
  if (address !== undefined && address !== '') void watch(address, closed, signal, every);
  return () => watching.abort();
}

async function watch(address: string, closed: () => void, signal: AbortSignal, every: Every): Promise<void> {
  const { connect } = await import('node:net');
  if (signal.aborted) return;
  // Go writes the zero byte that an abstract name of Linux begins with as @.
  const socket = connect(address.replace(/^@/, '\0'));
  socket.unref();
  let connected = false;
  socket.once('connect', () => {
    connected = true;
  });
  socket.on('error', () => socket.destroy());
  socket.resume();
  socket.once('close', () => {
    if (connected) closed();
    // Up to Node 20 an abstract name is filled up to 108 bytes, and is then another one than docker's.
    else if (address.startsWith('@')) void watchList(address, closed, signal, every);
  });
  signal.addEventListener('abort', () => socket.destroy(), { once: true });
}

/** For sockets that cannot be connected to: an address stands in the list of the system as long as somebody listens. */
async function watchList(address: string, closed: () => void, signal: AbortSignal, every: Every): Promise<void> {
  const { readFile } = await import('node:fs/promises');
  const isListed = async (): Promise<boolean | undefined> => {
    // A system without the list cannot tell.
    const list = await readFile('/proc/net/unix', 'latin1').catch(() => undefined);
    return list?.includes(` ${address}\n`);
  };
  // One that has gone already, or that was inherited: nobody is there to say stop.
  if ((await isListed()) !== true || signal.aborted) return;
  const end = every(LOOK_EVERY, async () => {
    if ((await isListed()) !== false) return;
    end();
    closed();
  });
  signal.addEventListener('abort', end, { once: true });
}
