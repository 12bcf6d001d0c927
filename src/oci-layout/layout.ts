import type { Limiter, Place, VerbOptions } from '../registry/client.ts';
import type { Root } from './files.ts';
import { type Found, findLayout, type LayoutPorts, makeIndex, makeLayout } from './folder.ts';

/** One layout, as the verbs see it. */
export interface Layout {
  /** `oci:FOLDER`, for messages and for the limiter. */
  readonly host: string;
  readonly folder: string;
  readonly ports: LayoutPorts;
  /** What is in the place of the folder; asked again until it is a layout. */
  find(): Promise<Found>;
  /** For whoever writes: the folder is made into a layout if nothing is there. */
  make(signal: AbortSignal): Promise<Root>;
  /** Runs it on a place of the host, as every request to a registry does: it bounds how many files are open. */
  onPlace<T>(options: VerbOptions, work: (place: Place) => Promise<T>): Promise<T>;
  /** Runs it when nothing else of this process that was given here is running. */
  alone<T>(work: () => Promise<T>): Promise<T>;
  readonly limiter: Limiter;
}

/** @see Layout */
export function createLayout(host: string, folder: string, ports: LayoutPorts, limiter: Limiter): Layout {
  let known: Root | undefined;
  let making: Promise<Root> | undefined;
  let last: Promise<unknown> = Promise.resolve();
  const find = async (): Promise<Found> => {
    if (known !== undefined) return { kind: 'layout', root: known };
    const found = await findLayout(folder);
    if (found.kind === 'layout') known = found.root;
    return found;
  };
  const make = async (signal: AbortSignal): Promise<Root> => {
    const found = await find();
    if (found.kind === 'layout') {
      await makeIndex(found.root, ports, signal);
      return found.root;
    }
    known = await makeLayout(folder, ports, signal);
    return known;
  };
  return {
    host,
    folder,
    ports,
    limiter,
    find,
    make: (signal) => {
      making ??= make(signal).catch((error: unknown) => {
        // Whoever comes next looks for itself.
        making = undefined;
        throw error;
      });
      return making;
    },
    alone: (work) => {
      const own = last.then(work);
      last = Promise.allSettled([own]);
      return own;
    },
    onPlace: async (options, work) => {
      if (options.place !== undefined) return work(options.place);
      const place = await limiter.take(host, options.signal);
      try {
        return await work(place);
      } finally {
        place.release();
      }
    },
  };
}
