import type { LayoutPorts } from '../oci-layout/folder.ts';
import type { Clock } from '../publish/ports.ts';
import { FILES, type Files } from '../store/files.ts';
import { takeLock } from '../store/lock.ts';
import type { Writer } from '../store/owner.ts';

/** How long to wait for another process that changes the same layout, in ms; each holds it for milliseconds. */
const WAIT = 30_000;

/** Layouts are handed on, so that their files get the rights that the user gives to new files. */
const SHARED: Files = { ...FILES, open: (path, flags) => FILES.open(path, flags) };

/** Who writes. `own`: the locks that this process holds or waits for, as one set for all its runs. */
export type LayoutWriter = Writer & { readonly own: Set<string> };

/** What layouts need of the world; their locks are those of the drafts. */
export function layoutPorts(clock: Clock, { own, ...writer }: LayoutWriter, token: () => string): LayoutPorts {
  return {
    token,
    epoch: clock.epoch,
    lock: (path, signal) => takeLock(path, { files: SHARED, clock, writer, token, signal, wait: WAIT, own }),
  };
}
