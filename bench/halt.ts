import type { ProxySettings } from './proxy.ts';

/** @see createHalt */
export type Halt = {
  /** Resolves when a request may go on to the registry, to what is called at its end; never for a write that is late. */
  admit(method: string, target: string): Promise<() => void>;
};

/**
 * Lets the first `stopAfter` blobs into the target and no write after them: later ones wait for ever, and when those
 * blobs have been answered, `onHalt` is told, so that a program can be killed at the same point however fast it is.
 */
export function createHalt(settings: ProxySettings, onHalt: () => void): Halt {
  const limit = settings.stopAfter ?? Number.POSITIVE_INFINITY;
  let begun = 0;
  let ended = 0;
  return {
    admit: async (method, target) => {
      // Reads always pass: the body of an upload that has begun may depend on one.
      if (method === 'GET' || method === 'HEAD') return () => undefined;
      if (begun >= limit) return await new Promise(() => undefined);
      if (!placesBlob(method, target, settings.mounts)) return () => undefined;
      begun += 1;
      return () => {
        ended += 1;
        if (ended === limit) onHalt();
      };
    },
  };
}

/** A mount that works, or the end of an upload. */
function placesBlob(method: string, target: string, mounts: ProxySettings['mounts']): boolean {
  const [path = '', query = ''] = target.split('?');
  if (!path.includes('/blobs/uploads/')) return false;
  const asked = new URLSearchParams(query);
  if (method === 'POST' && asked.has('mount')) return mounts === 'work';
  return (method === 'PUT' || method === 'POST') && asked.has('digest');
}
