import { createHash } from 'node:crypto';
import type { CommandResult } from './command.ts';
import type { Platform } from './job.ts';
import { expectedPlatforms, type Task } from './peers.ts';

/** Whether the registry now holds what was asked for, as the registry itself says. */
export type Outcome = { readonly kind: 'right' } | { readonly kind: 'fails'; readonly why: string };

type Child = { readonly digest: string; readonly platform?: Platform };

const INDEX_TYPES =
  'application/vnd.oci.image.index.v1+json, application/vnd.docker.distribution.manifest.list.v2+json';
const MANIFEST_TYPES =
  'application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json';

/**
 * Judges a run: its exit code first, then the registry's content, asked straight and not through the proxy.
 * @param list whether there must be a list; else the images alone are looked for
 */
export async function judge(origin: string, task: Task, command: CommandResult, list = true): Promise<Outcome> {
  if (command.exitCode !== 0) {
    const line = firstErrorLine(command.output, task.host);
    return { kind: 'fails', why: command.exitCode === 'timeout' ? 'timed out' : `exit ${command.exitCode}: ${line}` };
  }
  const wrong = (list ? await whatIsWrongWithList(origin, task) : undefined) ?? (await whatIsMissing(origin, task));
  return wrong === undefined ? { kind: 'right' } : { kind: 'fails', why: wrong };
}

async function whatIsWrongWithList(origin: string, task: Task): Promise<string | undefined> {
  const bytes = await get(`${origin}/v2/${task.repository}/manifests/${task.tag}`, INDEX_TYPES);
  if (bytes === undefined) return 'no list at the target tag';
  const children = (JSON.parse(bytes.toString()) as { manifests?: readonly Child[] }).manifests ?? [];
  const expected = expectedPlatforms(task);
  for (const { digest, platform } of children) {
    const wanted = expected.get(digest);
    if (wanted === undefined) return `the list names ${digest}, which is none of the sources`;
    const found = `${platform?.os}/${platform?.architecture}`;
    // The variant is not compared: a config may leave it open, and peers fill it differently.
    if (!wanted.startsWith(found)) return `${digest} is called ${found} instead of ${wanted}`;
  }
  if (children.length !== expected.size) return `${children.length} children instead of ${expected.size}`;
  return undefined;
}

async function whatIsMissing(origin: string, task: Task): Promise<string | undefined> {
  const base = `${origin}/v2/${task.repository}`;
  for (const digest of expectedPlatforms(task).keys()) {
    const bytes = await get(`${base}/manifests/${digest}`, MANIFEST_TYPES);
    if (bytes === undefined) return `child ${digest} is not in the target`;
    if (sha256(bytes) !== digest) return `child ${digest} has other bytes`;
  }
  for (const { digest, size } of task.images.flatMap(({ blobs, attestation }) => [
    ...blobs,
    ...(attestation?.blobs ?? []),
  ])) {
    const head = await fetch(`${base}/blobs/${digest}`, { method: 'HEAD' });
    if (head.status !== 200) return `blob ${digest} is not in the target`;
    if (head.headers.get('content-length') !== String(size)) return `blob ${digest} has another size`;
  }
  return undefined;
}

async function get(url: string, accept: string): Promise<Buffer | undefined> {
  const answer = await fetch(url, { headers: { accept } });
  const body = Buffer.from(await answer.arrayBuffer());
  return answer.status === 200 ? body : undefined;
}

function sha256(bytes: Buffer): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}

/** The first line that speaks of an error, else the last one; without the address of this run, hosts being of no interest. */
export function firstErrorLine(output: string, host: string): string {
  const lines = output.split('\n').filter((line) => line.trim() !== '');
  const line = lines.find((one) => /error|fail|denied|not found/i.test(one)) ?? lines.at(-1) ?? 'no output';
  const message = /\bmsg="(.*)"/.exec(line)?.[1] ?? line; // logrus, as manifest-tool and buildx write
  return message.trim().replaceAll(`${host}/`, '').slice(0, 240);
}
