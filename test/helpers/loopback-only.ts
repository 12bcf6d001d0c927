import dns from 'node:dns';
import { syncBuiltinESMExports } from 'node:module';
import { isIP, type LookupFunction, Socket } from 'node:net';

/**
 * Lets nothing of this process reach beyond loopback. For runs in which the program is broken on purpose: the tests of
 * the origin rules name metadata services and private networks, and a client without these rules would connect there.
 */
const LOOPBACK = /^(?:127\.\d+\.\d+\.\d+|::1|::ffff:127\.\d+\.\d+\.\d+|localhost|.*\.localhost)$/i;

function refuse(host: string): Error {
  return Object.assign(new Error(`loopback only: ${host}`), { code: 'EHOSTUNREACH' });
}

const connect = Socket.prototype.connect;

/** `net` and `tls` hand on `[options, callback]` or what the caller wrote. */
function optionsOf(args: readonly unknown[]): { host?: unknown; path?: unknown; lookup?: LookupFunction } {
  const first = Array.isArray(args[0]) ? args[0][0] : args[0];
  if (typeof first === 'object' && first !== null) return first;
  return { host: typeof args[1] === 'string' ? args[1] : undefined };
}

Socket.prototype.connect = function (this: Socket, ...args: unknown[]): Socket {
  const options = optionsOf(args);
  const host = typeof options.host === 'string' ? options.host.replace(/^\[|\]$/g, '') : 'localhost';
  if (options.path === undefined && !LOOPBACK.test(host) && (isIP(host) !== 0 || options.lookup === undefined)) {
    queueMicrotask(() => this.destroy(refuse(host)));
    return this;
  }
  const { lookup } = options;
  if (lookup !== undefined) {
    options.lookup = (name, how, callback) =>
      lookup(name, how, (error, found, family) => {
        const addresses = typeof found === 'string' ? [found] : (found ?? []).map(({ address }) => address);
        const foreign = addresses.find((address) => !LOOPBACK.test(address));
        if (error !== null || foreign === undefined) callback(error, found, family);
        else callback(refuse(foreign), [], undefined);
      });
  }
  return Reflect.apply(connect, this, args);
};

const lookup = dns.lookup;
dns.lookup = ((name: string, ...rest: unknown[]) => {
  if (LOOPBACK.test(name) || isIP(name) !== 0) return Reflect.apply(lookup, dns, [name, ...rest]);
  const callback = rest.at(-1);
  if (typeof callback === 'function') queueMicrotask(() => callback(refuse(name)));
}) as typeof dns.lookup;
syncBuiltinESMExports();
