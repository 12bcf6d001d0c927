import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { ProxySettings } from './proxy.ts';
import type { Order, Reply } from './proxy-process.ts';
import type { Traffic } from './traffic.ts';

/** @see startProxy */
export type RunningProxy = {
  readonly port: number;
  /** @param onHalt told when `settings.stopAfter` blobs are in the target */
  begin(settings: ProxySettings, onHalt?: () => void): Promise<void>;
  end(): Promise<Traffic>;
  close(): Promise<void>;
};

/** Starts the proxy in a process of its own; it ends with `close` or with this process. */
export async function startProxy(root: string, registryPort: number): Promise<RunningProxy> {
  const script = join(root, 'scripts', 'run-ts.js');
  const child = fork(script, [join(root, 'bench', 'proxy-process.ts'), String(registryPort)], { cwd: root });
  const ready = await next(child, 'ready');
  let halted: () => void = () => undefined;
  child.on('message', (message) => {
    if ((message as Reply).kind === 'halted') halted();
  });
  return {
    port: ready.port,
    begin: async (settings, onHalt = () => undefined) => {
      halted = onHalt;
      await ask(child, { kind: 'begin', settings }, 'begun');
    },
    end: async () => (await ask(child, { kind: 'end' }, 'traffic')).traffic,
    close: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = once(child, 'exit');
      if (child.connected) child.disconnect();
      await gone;
    },
  };
}

async function ask<K extends Reply['kind']>(child: ChildProcess, order: Order, kind: K) {
  const answer = next(child, kind);
  child.send(order);
  return await answer;
}

async function next<K extends Reply['kind']>(child: ChildProcess, kind: K): Promise<Extract<Reply, { kind: K }>> {
  return await new Promise((resolve, reject) => {
    const settle = (end: () => void) => {
      child.off('exit', ended);
      child.off('message', answered);
      end();
    };
    const ended = () => settle(() => reject(new Error('the proxy has ended')));
    const answered = (message: unknown) => {
      const reply = message as Reply;
      if (reply.kind === kind) settle(() => resolve(reply as Extract<Reply, { kind: K }>));
      // Comes unasked, also between an order and its answer.
      else if (reply.kind !== 'halted')
        settle(() => reject(new Error(`the proxy answered ${reply.kind} instead of ${kind}`)));
    };
    child.once('exit', ended);
    child.on('message', answered);
  });
}
