import { argv } from 'node:process';
import { createProxy, type ProxySettings } from './proxy.ts';
import type { Traffic } from './traffic.ts';

// The proxy in a process of its own, so that its work is not on the clock of whoever drives the measurement.
// `node scripts/run-ts.js bench/proxy-process.ts REGISTRY-PORT`, started with an IPC channel.

/** What the driver says. */
export type Order = { readonly kind: 'begin'; readonly settings: ProxySettings } | { readonly kind: 'end' };

/** What comes back: once `ready`, then one answer for each order, and `halted` whenever that happens. */
export type Reply =
  | { readonly kind: 'ready'; readonly port: number }
  | { readonly kind: 'begun' }
  | { readonly kind: 'halted' }
  | { readonly kind: 'traffic'; readonly traffic: Traffic };

const proxy = await createProxy(Number(argv[2]));
const reply = (message: Reply) => process.send?.(message);

process.on('message', (order: Order) => {
  if (order.kind === 'begin') {
    void proxy.idle().then(() => {
      proxy.begin(order.settings, () => reply({ kind: 'halted' }));
      reply({ kind: 'begun' });
    });
  } else {
    reply({ kind: 'traffic', traffic: proxy.end() });
  }
});
process.once('disconnect', () => void proxy.close());
reply({ kind: 'ready', port: proxy.port });
