import { join } from 'node:path';
import { type ExternalRegistry, makeFolder, startDebianRegistry } from '../helpers/external-registry.ts';
import type { Source } from './images.ts';
import { type Client, makeClient } from './manifest-clients.ts';
import { type ImagePlan, makeSource } from './manifest-images.ts';
import { type Answer, getManifest, pushSource } from './registry-access.ts';

/** Debian's docker-registry, and whoever wants to try something at it. */
export type Stage = {
  readonly folder: string;
  readonly host: string;
  /** Puts an image there; a Docker image for linux/amd64 as far as nothing else is said. */
  seed(repository: string, plan?: Partial<ImagePlan>): Promise<Seeded>;
  /** Both clients, each in a home of its own. */
  clients(): Promise<{ readonly ours: Client; readonly docker: Client }>;
  /** What a tag holds, by `REPOSITORY:TAG`. */
  read(name: string): Promise<Document>;
  stop(): Promise<void>;
};

/** An image in the registry and its reference. */
export type Seeded = { readonly reference: string; readonly source: Source };

/** A manifest or list as the registry serves it. */
export type Document = {
  readonly status: number;
  readonly mediaType: string;
  readonly text: string;
  readonly entries: readonly Entry[];
};

type Entry = {
  readonly mediaType: string;
  readonly digest: string;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly platform?: Readonly<Record<string, unknown>>;
};

/** The platform of an image for ARM. */
export function arm(variant?: string): Pick<ImagePlan, 'platform'> {
  return { platform: { architecture: 'arm', os: 'linux', ...(variant === undefined ? {} : { variant }) } };
}

/** @param name of a folder for its storage, when one test file has several */
export async function startStage(name = 'registry'): Promise<Stage> {
  const folder = await makeFolder();
  const registry: ExternalRegistry = await startDebianRegistry(join(folder.path, name));
  const { host } = registry;
  return {
    folder: folder.path,
    host,
    seed: async (repository, plan = {}) => {
      const platform = { architecture: 'amd64', os: 'linux' };
      const source = makeSource({ repository, tag: '1', family: 'docker', platform, writing: 'docker', ...plan });
      await pushSource(host, source);
      return { reference: `${host}/${repository}:${source.tag}`, source };
    },
    clients: async () => ({
      ours: await makeClient('ours', folder.path),
      docker: await makeClient('docker', folder.path),
    }),
    read: async (named) => {
      const [repository = '', tag = 'latest'] = named.split(':');
      return documentOf(await getManifest(host, repository, tag));
    },
    async stop() {
      await registry.stop();
      await folder.remove();
    },
  };
}

function documentOf({ status, headers, body }: Answer): Document {
  const text = body.toString('utf8');
  const { manifests = [] } = JSON.parse(text) as { readonly manifests?: readonly Entry[] };
  return { status, mediaType: String(headers['content-type']), text, entries: manifests };
}
