import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** What happens to the bytes of one exchange, once `after` of them have passed. */
export type ByteFault = {
  /** Against the first line of a request. */
  readonly request: RegExp;
  readonly in: 'request' | 'answer';
  /** Bytes of the head count. Default 0. */
  readonly after?: number;
  /**
   * `close` and `reset` end both connections; `stall` lets nothing more through; `trickle` lets a byte through every 20
   * ms; `corrupt` flips a bit of the next byte; `lose` lets the request through and ends the client's connection when
   * the answer begins.
   */
  readonly how: 'close' | 'reset' | 'stall' | 'trickle' | 'corrupt' | 'lose';
  /** How many requests, from the first that fits. Default 1. */
  readonly times?: number;
};

/** A wire that fails as it is told. */
export type ByteProxy = {
  /** `127.0.0.1:PORT` */
  readonly host: string;
  add(fault: ByteFault): void;
  /** Faults that have struck so far. */
  readonly struck: () => number;
  /** From now on nothing fails. */
  mend(): void;
  stop(): Promise<void>;
};

type Armed = { readonly fault: ByteFault; left: number };
type Due = { readonly fault: ByteFault; passed: number; over: boolean };

const REQUEST = /^(?:GET|HEAD|POST|PUT|PATCH|DELETE) \S+ HTTP\/1\.1\r\n/;

/** A trickle's pause, in ms. */
const DRIP = 20;

/** Listens on loopback and passes bytes to `target`, `127.0.0.1:PORT`, without reading more of them than first lines. */
export async function startByteProxy(target: string): Promise<ByteProxy> {
  let armed: Armed[] = [];
  let struck = 0;
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const registry = connect(Number(new URL(`http://${target}`).port), '127.0.0.1');
    for (const socket of [client, registry]) {
      sockets.add(socket);
      // Ends are passed on below; that they were rude is what this is for.
      socket.on('error', () => undefined);
      socket.once('close', () => sockets.delete(socket));
    }
    client.once('close', () => registry.destroy());
    registry.once('close', () => client.destroySoon());
    let due: Due | undefined;
    const strike = (): void => {
      if (due === undefined || due.over) return;
      due.over = true;
      struck += 1;
    };
    const end = (how: 'close' | 'reset'): void => {
      strike();
      if (how === 'reset') client.resetAndDestroy();
      else client.destroySoon();
      registry.destroy();
    };
    const pass = (piece: Buffer, to: Socket, which: 'request' | 'answer'): void => {
      if (due === undefined || due.over || due.fault.in !== which) {
        to.write(piece);
        return;
      }
      const { fault } = due;
      const left = (fault.after ?? 0) - due.passed;
      due.passed += piece.length;
      if (fault.how === 'lose' || piece.length <= left) {
        to.write(piece);
        return;
      }
      const [before, rest] = [piece.subarray(0, Math.max(0, left)), piece.subarray(Math.max(0, left))];
      to.write(before);
      if (fault.how === 'close' || fault.how === 'reset') end(fault.how);
      else if (fault.how === 'corrupt') {
        strike();
        const wrong = Buffer.from(rest);
        wrong[0] = (wrong[0] ?? 0) ^ 1;
        to.write(wrong);
      } else if (fault.how === 'trickle') drip(rest, to, () => strike());
      else if (due.passed - piece.length <= (fault.after ?? 0)) struck += 1;
    };
    client.on('data', (piece: Buffer) => {
      const [line] = REQUEST.exec(piece.subarray(0, 4096).toString('latin1')) ?? [];
      if (line !== undefined) {
        const found = armed.find(({ fault, left }) => left > 0 && fault.request.test(line));
        if (found !== undefined) found.left -= 1;
        due = found === undefined ? undefined : { fault: found.fault, passed: 0, over: false };
      }
      pass(piece, registry, 'request');
    });
    registry.on('data', (piece: Buffer) => {
      if (due?.fault.how === 'lose' && !due.over) return end('close');
      pass(piece, client, 'answer');
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    host: `127.0.0.1:${port}`,
    add: (fault) => void armed.push({ fault, left: fault.times ?? 1 }),
    struck: () => struck,
    mend: () => {
      armed = [];
    },
    async stop() {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/** One byte after the other, as long as somebody takes them. */
function drip(bytes: Buffer, to: Socket, started: () => void): void {
  started();
  let at = 0;
  const timer = setInterval(() => {
    if (at >= bytes.length || to.destroyed) clearInterval(timer);
    else to.write(bytes.subarray(at, ++at));
  }, DRIP);
  to.once('close', () => clearInterval(timer));
}
