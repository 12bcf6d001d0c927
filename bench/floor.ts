import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { Agent, type IncomingMessage, type RequestOptions, request } from 'node:http';
import { join } from 'node:path';
import { argv, env } from 'node:process';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';

// What the job takes at the very least: every request of a step at once, no check, no retry, no limit, no message.
// `node floor.mjs HOST/TARGET:TAG HOST/SOURCE:TAG...`, all on one registry that speaks plain HTTP.

type Descriptor = { mediaType: string; digest: string; size: number; platform?: object; annotations?: object };
type Manifest = { config: Descriptor; layers: Descriptor[]; manifests?: Descriptor[] };
type Call = { headers?: Record<string, string>; body?: Buffer; from?: IncomingMessage };
type Source = { repository: string; descriptor: Descriptor; bytes: Buffer; manifest: Manifest };

const INDEX = 'application/vnd.oci.image.index.v1+json';
const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
const ACCEPT = { accept: `${INDEX}, ${MANIFEST}` };
const agent = new Agent({ keepAlive: true });
const tokens = new Map<string, string>();

const [host = '', target = '', tag = ''] = split(argv[2] ?? '');
const sources = argv.slice(3).map(split);

function split(reference: string): string[] {
  return /^([^/]+)\/(.+):([^:]+)$/.exec(reference)?.slice(1) ?? [];
}

async function open(method: string, path: string, call: Call = {}): Promise<IncomingMessage> {
  const token = tokens.get(/^\/v2\/(.+)\/(?:blobs|manifests)\//.exec(path)?.[1] ?? '');
  const headers = { ...(token === undefined ? {} : { authorization: `Bearer ${token}` }), ...call.headers };
  const [hostname, port] = host.split(':');
  const options: RequestOptions = { agent, hostname, port, method, path, headers };
  return await new Promise((resolve, reject) => {
    const sent = request(options, resolve).on('error', reject);
    if (call.from === undefined) sent.end(call.body);
    else pipeline(call.from, sent).catch(reject);
  });
}

async function ask(method: string, path: string, call?: Call) {
  const answer = await open(method, path, call);
  const body = await buffer(answer);
  const { statusCode: status = 0, headers } = answer;
  if (status >= 400 && status !== 401 && status !== 404) throw new Error(`${method} ${path}: ${status} ${body}`);
  return { status, headers, body };
}

async function readManifest(repository: string, reference: string): Promise<Source | undefined> {
  const { status, headers, body } = await ask('GET', `/v2/${repository}/manifests/${reference}`, { headers: ACCEPT });
  if (status !== 200) return undefined;
  const digest = `sha256:${createHash('sha256').update(body).digest('hex')}`;
  const descriptor = { mediaType: headers['content-type'] ?? '', digest, size: body.length };
  return { repository, descriptor, bytes: body, manifest: JSON.parse(body.toString()) };
}

function readAll() {
  return Promise.all([readManifest(target, tag), ...sources.map(([, from = '', at = '']) => readManifest(from, at))]);
}

/** A token for each source and one that mounts from all of them, side by side. */
async function logIn(): Promise<void> {
  const pulls = sources.map(([, from]) => `repository:${from}:pull`);
  const wanted = sources.map(([, from = ''], number) => [from, [pulls[number] ?? '']] as const);
  const file = join(env['DOCKER_CONFIG'] ?? '', 'config.json');
  const login = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).auths[host].auth : undefined;
  const headers: Record<string, string> = login === undefined ? {} : { authorization: `Basic ${login}` };
  await Promise.all(
    [...wanted, [target, [`repository:${target}:pull,push`, ...pulls]] as const].map(async ([repository, scopes]) => {
      const query = new URLSearchParams([
        ['service', 'bench'],
        ...scopes.map((scope): [string, string] => ['scope', scope]),
      ]);
      tokens.set(repository, JSON.parse((await ask('GET', `/token?${query}`, { headers })).body.toString()).token);
    }),
  );
}

async function place(repository: string, blob: Descriptor): Promise<void> {
  const query = new URLSearchParams({ mount: blob.digest, from: repository });
  const { status, headers } = await ask('POST', `/v2/${target}/blobs/uploads/?${query}`);
  if (status === 201) return;
  const session = new URL(headers.location ?? '', `http://${host}`);
  session.searchParams.set('digest', blob.digest);
  const from = await open('GET', `/v2/${repository}/blobs/${blob.digest}`);
  const length = { 'content-type': 'application/octet-stream', 'content-length': String(blob.size) };
  await ask('PUT', session.pathname + session.search, { headers: length, from });
}

async function withPlatform({ repository, descriptor, manifest }: Source): Promise<Descriptor> {
  if (descriptor.platform !== undefined) return descriptor;
  const { body } = await ask('GET', `/v2/${repository}/blobs/${manifest.config.digest}`);
  const { os, architecture, variant } = JSON.parse(body.toString());
  return { ...descriptor, platform: { architecture, os, variant } };
}

async function flatten(source: Source): Promise<Source[]> {
  const { repository, manifest } = source;
  if (manifest.manifests === undefined) return [source];
  return await Promise.all(
    manifest.manifests.map(async (descriptor) => {
      const child = await readManifest(repository, descriptor.digest);
      if (child === undefined) throw new Error(`${repository}@${descriptor.digest} is not there`);
      return { ...child, descriptor };
    }),
  );
}

let [old, ...read] = await readAll();
if (read.includes(undefined)) {
  await logIn();
  [old, ...read] = await readAll();
}
const images = (await Promise.all(read.flatMap((source) => source ?? []).map(flatten))).flat();
const held = old?.manifest.manifests?.map((child) => child.digest).join();
if (held !== images.map((image) => image.descriptor.digest).join()) {
  const blobs = images.flatMap(({ repository, manifest }) =>
    [...manifest.layers, manifest.config].map((blob) => place(repository, blob)),
  );
  const [manifests] = await Promise.all([Promise.all(images.map(withPlatform)), ...blobs]);
  const put = (reference: string, type: string, body: Buffer) =>
    ask('PUT', `/v2/${target}/manifests/${reference}`, { headers: { 'content-type': type }, body });
  await Promise.all(images.map(({ descriptor, bytes }) => put(descriptor.digest, descriptor.mediaType, bytes)));
  await put(tag, INDEX, Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: INDEX, manifests })));
}
agent.destroy();
