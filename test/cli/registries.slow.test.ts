import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type RunningRegistry, seedDebian } from '../../src/registry-server/index.ts';
import { startRegistry } from '../helpers/registry.ts';
import { selfSigned } from '../http/certificate.ts';
import { cli, emptyFolder } from './program.ts';

// What a configuration says of one registry, seen from that registry.

const KIB = 1024;
let registry: RunningRegistry;

afterEach(() => registry?.close());

/** Publishes two images of other repositories, with what the configuration says of the registry. */
async function publish(settings: Record<string, unknown>, ...flags: readonly string[]) {
  const folder = emptyFolder();
  const sources = seedDebian(registry, { layerBytes: 200 * KIB }).slice(0, 2);
  writeFileSync(join(folder, 'manifest-publish.json'), JSON.stringify({ registries: { [registry.host]: settings } }));
  const words = sources.map((image) => `${registry.host}/${image.repository}:${image.tag}`);
  const finished = await cli(folder, ['publish', `${registry.host}/debian/debian:1`, ...words, ...flags]);
  expect(finished.exitCode, finished.stderr).toBe(0);
  expect(registry.missingFrom('debian/debian', '1')).toEqual([]);
  return { folder, ...finished };
}

const mounts = () => registry.journal.filter((entry) => entry.operation === 'mount').length;
const patches = () => registry.journal.filter((entry) => entry.method === 'PATCH').length;

describe('what is said of how blobs get to a registry', () => {
  it('mount: never asks for none', async () => {
    registry = await startRegistry();
    await publish({ mount: 'never' });
    expect(mounts()).toBe(0);
    await registry.close();
    registry = await startRegistry();
    await publish({ mount: 'auto' });
    expect(mounts()).toBeGreaterThan(0);
  });

  it('upload: chunks sends chunks of the size that is said', async () => {
    registry = await startRegistry({ changes: { mount: { mode: 'ignore' } } });
    await publish({ upload: 'chunks', chunkSize: '64KiB' });
    // 200 KiB are four chunks at least.
    expect(patches()).toBeGreaterThanOrEqual(8 * 4);
  });

  it('upload: whole never does', async () => {
    registry = await startRegistry({ changes: { mount: { mode: 'ignore' } } });
    await publish({ upload: 'whole' });
    expect(patches()).toBe(0);
  });
});

describe('what a registry has to say', () => {
  const TEXT = 'this registry moves to registry.example.test on friday';

  it('is told once on stderr, and stands in the report', async () => {
    registry = await startRegistry({ changes: { warning: TEXT } });
    const { stderr, stdout } = await publish({}, '--json');
    expect(stderr.split(`warning: ${registry.host} says: ${TEXT}`)).toHaveLength(2);
    expect(JSON.parse(stdout).warnings).toEqual([`${registry.host} says: ${TEXT}`]);
  });

  it('is kept from stderr with -q, not from the report', async () => {
    registry = await startRegistry({ changes: { warning: TEXT } });
    const { stderr, folder } = await publish({}, '-q', '--report', 'report.json');
    expect(stderr).toBe('');
    expect(JSON.parse(readFileSync(join(folder, 'report.json'), 'utf8')).warnings).toEqual([
      `${registry.host} says: ${TEXT}`,
    ]);
  });

  it('cannot command a runner or a terminal', async () => {
    registry = await startRegistry({ changes: { warning: '##[error]x ::set-output name=a::b' } });
    const { stderr } = await publish({});
    expect(stderr).not.toMatch(/##\[error\]|(^|\s)::set-output/m);
    expect(stderr).toContain(`${registry.host} says: `);
  });
});

describe('a registry that wants to know this machine', () => {
  const server = selfSigned(['127.0.0.1']);
  const client = selfSigned(['client.test']);
  const stranger = selfSigned(['stranger.test']);
  const folder = emptyFolder();
  const MANIFEST = JSON.stringify({
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    config: { mediaType: 'application/vnd.oci.image.config.v1+json', digest: `sha256:${'0'.repeat(64)}`, size: 2 },
    layers: [],
  });
  let https: Server;
  let host: string;

  beforeAll(async () => {
    https = createServer(
      { ...server, ca: [client.cert], requestCert: true, rejectUnauthorized: false },
      (request, response) => {
        const known = (request.socket as TLSSocket).authorized;
        response.writeHead(known ? 200 : 403, { 'content-type': 'application/vnd.oci.image.manifest.v1+json' });
        response.end(known ? MANIFEST : '');
      },
    );
    await new Promise<void>((resolve) => https.listen(0, '127.0.0.1', resolve));
    host = `127.0.0.1:${(https.address() as AddressInfo).port}`;
    const files = {
      'ca.pem': server.cert,
      'client.pem': client.cert,
      'client-key.pem': client.key,
      'stranger-key.pem': stranger.key,
      'both.pem': client.cert + client.key,
      'empty.pem': '',
    };
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  });

  afterAll(() => new Promise((resolve) => https.close(resolve)));

  function inspect(settings: Record<string, string>) {
    const config = JSON.stringify({ registries: { [host]: { caFile: 'ca.pem', ...settings } } });
    writeFileSync(join(folder, 'it.json'), config);
    return cli(folder, ['inspect', '--digest', `${host}/a/b:1`, '--config', 'it.json', '--retries', '0']);
  }

  it.each([
    ['of two files', { certFile: 'client.pem', keyFile: 'client-key.pem' }],
    ['of one file with both', { certFile: 'both.pem', keyFile: 'both.pem' }],
  ])('is shown the certificate %s', async (_, settings) => {
    const { stdout, stderr, exitCode } = await inspect(settings);
    expect(exitCode, stderr).toBe(0);
    expect(stdout).toMatch(/^sha256:/);
  });

  it('refuses who has none', async () => {
    expect((await inspect({})).exitCode).toBe(3);
  });

  it.each([
    [
      'the key of another certificate',
      { certFile: 'client.pem', keyFile: 'stranger-key.pem' },
      2,
      'do not belong together',
    ],
    ['no key in its file', { certFile: 'client.pem', keyFile: 'empty.pem' }, 2, 'holds no usable private key'],
    [
      'no certificate in its file',
      { certFile: 'empty.pem', keyFile: 'client-key.pem' },
      2,
      'holds no usable certificate',
    ],
    ['a file that is missing', { certFile: 'client.pem', keyFile: 'gone.pem' }, 8, 'gone.pem (ENOENT)'],
  ])('is not asked at all with %s', async (_, settings, code, message) => {
    const { stderr, exitCode } = await inspect(settings);
    expect(exitCode).toBe(code);
    expect(stderr).toContain(message);
  });
});
