import type { Clock } from '../publish/ports.ts';
import type { Limiter, RegistryClient } from '../registry/client.ts';
import type { LayoutWriter } from './layouts.ts';

/** What a layout needs of this process. */
export type LayoutWorld = {
  readonly clock: Clock;
  readonly writer: LayoutWriter;
  readonly token: () => string;
  readonly limiter: Limiter;
};

/**
 * The verbs of an image layout. What is behind them is loaded with the first that is called: few runs have a layout.
 *
 * @param host `oci:FOLDER`
 */
export function layoutClient(host: string, world: LayoutWorld): RegistryClient {
  let loading: Promise<RegistryClient> | undefined;
  const open = () => {
    loading ??= load(host, world);
    return loading;
  };
  return {
    host,
    mounting: 'never',
    announce: () => undefined,
    getManifest: async (...words) => (await open()).getManifest(...words),
    listReferrers: async (...words) => (await open()).listReferrers(...words),
    hasManifest: async (...words) => (await open()).hasManifest(...words),
    hasBlob: async (...words) => (await open()).hasBlob(...words),
    readBlob: async (...words) => (await open()).readBlob(...words),
    openBlob: async (...words) => (await open()).openBlob(...words),
    mountBlob: async (...words) => (await open()).mountBlob(...words),
    mountAnyBlob: async (...words) => (await open()).mountAnyBlob(...words),
    openUpload: async (...words) => (await open()).openUpload(...words),
    uploadTurn: async (...words) => (await open()).uploadTurn(...words),
    upload: async (...words) => (await open()).upload(...words),
    resumeUpload: async (...words) => (await open()).resumeUpload(...words),
    cancelUpload: async (...words) => (await open()).cancelUpload(...words),
    putManifest: async (...words) => (await open()).putManifest(...words),
    deleteManifest: async (...words) => (await open()).deleteManifest(...words),
    deleteBlob: async (...words) => (await open()).deleteBlob(...words),
  };
}

async function load(host: string, { clock, writer, token, limiter }: LayoutWorld): Promise<RegistryClient> {
  const [{ createLayoutClient }, { layoutPorts }] = await Promise.all([
    import('../oci-layout/client.ts'),
    import('./layouts.ts'),
  ]);
  return createLayoutClient(host, layoutPorts(clock, writer, token), limiter);
}
