import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { whenDockerStops } from '../../src/cli/docker-plugin-socket.ts';

const servers = new Set<Server>();
const sockets = new Set<Socket>();

afterEach(() => {
  for (const socket of sockets) socket.destroy();
  for (const server of servers) server.close();
});

async function docker(address: string): Promise<{ readonly connected: Promise<unknown>; stop(): void }> {
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
  });
  servers.add(server);
  const connected = once(server, 'connection');
  server.listen(address.replace(/^@/, '\0'));
  await once(server, 'listening');
  return { connected, stop: () => [...sockets].forEach((socket) => void socket.end()) };
}

function every(milliseconds: number, tick: () => void): () => void {
  const timer = setInterval(tick, milliseconds);
  return () => clearInterval(timer);
}

let made = 0;
const names = (): readonly string[] => {
  made += 1;
  const name = `docker_cli_test_${process.pid}_${made}`;
  return [join(tmpdir(), name), ...(process.platform === 'linux' ? [`@${name}`] : [])];
};

/** Resolves to true when it is called, and to false after a second. */
function called(): { readonly stop: () => void; readonly within: Promise<boolean> } {
  let stop = () => undefined as undefined;
  const within = Promise.race([
    new Promise<boolean>((resolve) => {
      stop = () => void resolve(true);
    }),
    sleep(1000).then(() => false),
  ]);
  return { stop: () => stop(), within };
}

describe("docker's word to its plugin", () => {
  it.each(names())('comes when it closes the socket %s', async (address) => {
    const { connected, stop } = await docker(address);
    const told = called();
    whenDockerStops({ DOCKER_CLI_PLUGIN_SOCKET: address }, told.stop, every);
    await connected;
    stop();
    expect(await told.within).toBe(true);
  });

  it('is not heard any more after the work', async () => {
    const [address = ''] = names();
    const { connected, stop } = await docker(address);
    const told = called();
    const end = whenDockerStops({ DOCKER_CLI_PLUGIN_SOCKET: address }, told.stop, every);
    await connected;
    end();
    stop();
    expect(await told.within).toBe(false);
  });

  it('is not taken from an address where nobody is', async () => {
    const told = called();
    whenDockerStops({ DOCKER_CLI_PLUGIN_SOCKET: join(tmpdir(), 'nobody-is-here') }, told.stop, every);
    whenDockerStops({ DOCKER_CLI_PLUGIN_SOCKET: '' }, told.stop, every);
    whenDockerStops({}, told.stop, every);
    expect(await told.within).toBe(false);
  });
});
