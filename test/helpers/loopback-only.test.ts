import dns from 'node:dns';
import {
  type AddressInfo,
  connect,
  createServer,
  type LookupFunction,
  type Server,
  type TcpNetConnectOpts,
} from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import './loopback-only.ts';

describe('a process that is kept to loopback', () => {
  let server: Server;
  let port = 0;

  beforeAll(async () => {
    server = createServer((socket) => socket.on('error', () => undefined));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    port = (server.address() as AddressInfo).port;
  });
  afterAll(() => new Promise((resolve) => server.close(resolve)));

  const outcome = (options: Partial<TcpNetConnectOpts>) =>
    new Promise<string>((resolve) => {
      const socket = connect({ port, ...options });
      socket.on('connect', () => {
        socket.destroy();
        resolve('connected');
      });
      socket.on('error', (error) => resolve(error.message));
    });
  const resolvesTo =
    (...addresses: readonly string[]): LookupFunction =>
    (_name, _options, callback) =>
      callback(
        null,
        addresses.map((address) => ({ address, family: 4 })),
      );

  it('connects to this machine', async () => {
    expect(await outcome({ host: '127.0.0.1' })).toBe('connected');
    expect(await outcome({ host: 'localhost', family: 4 })).toBe('connected');
    expect(await outcome({ host: 'a.test', lookup: resolvesTo('127.0.0.1') })).toBe('connected');
  });

  it.each<[string, Partial<TcpNetConnectOpts>, string]>([
    ['an address', { host: '10.0.0.1' }, '10.0.0.1'],
    ['a metadata service', { host: '169.254.169.254' }, '169.254.169.254'],
    ['an IPv6 address', { host: '2606:4700::1111' }, '2606:4700::1111'],
    ['a name', { host: 'a.test' }, 'a.test'],
    [
      'a name that resolves to a foreign address',
      { host: 'a.test', lookup: resolvesTo('127.0.0.1', '10.0.0.2') },
      '10.0.0.2',
    ],
    ['a name that the system would look up', { host: 'a.test', lookup: dns.lookup }, 'a.test'],
  ])('refuses %s', async (_what, options, host) => {
    expect(await outcome(options)).toBe(`loopback only: ${host}`);
  });
});
