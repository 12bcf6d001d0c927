import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RunningRegistry, seedDebian } from '../../src/registry-server/index.ts';
import { startRegistry } from '../helpers/registry.ts';
import { selfSigned } from '../http/certificate.ts';
import { cli, emptyFolder } from './program.ts';

const folder = emptyFolder();
const certificate = selfSigned(['127.0.0.1']);
let registry: RunningRegistry;
let image: string;

beforeAll(async () => {
  registry = await startRegistry({ tls: certificate });
  const [first] = seedDebian(registry);
  image = `${registry.host}/${first?.repository}:${first?.tag}`;
  writeFileSync(join(folder, 'ca.pem'), certificate.cert);
  writeFileSync(join(folder, 'other.pem'), rootCertificates[0] ?? '');
  writeFileSync(join(folder, 'broken.pem'), '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n');
  writeFileSync(join(folder, 'empty.pem'), 'nothing\n');
  writeFileSync(join(folder, 'by-host.yaml'), `registries:\n  '${registry.host}':\n    caFile: ca.pem\n`);
  writeFileSync(join(folder, 'insecure.yaml'), `registries:\n  '${registry.host}':\n    insecure: true\n`);
});

afterAll(() => registry.close());

describe('a registry whose certificate nobody vouches for', () => {
  it.each([
    ['without a word', []],
    ['with another authority', ['--ca-file', 'other.pem']],
  ])('is not spoken to %s', async (_, flags) => {
    const { stdout, stderr, exitCode } = await cli(folder, ['inspect', '--digest', image, '--retries', '0', ...flags]);
    expect(stderr).toContain('TLS_FAILED (exit 5)');
    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 5 });
  });

  it.each([
    ['with --ca-file', ['--ca-file', 'ca.pem'], {}],
    ['with MANIFEST_PUBLISH_CA_FILE', [], { MANIFEST_PUBLISH_CA_FILE: 'ca.pem' }],
    ['with SSL_CERT_FILE', [], { SSL_CERT_FILE: 'ca.pem' }],
    ['with NODE_EXTRA_CA_CERTS', [], { NODE_EXTRA_CA_CERTS: 'ca.pem' }],
    ['with both variables naming one file', [], { NODE_EXTRA_CA_CERTS: 'ca.pem', SSL_CERT_FILE: 'ca.pem' }],
    [
      'with another authority beside that of NODE_EXTRA_CA_CERTS',
      ['--ca-file', 'other.pem'],
      { NODE_EXTRA_CA_CERTS: 'ca.pem' },
    ],
    ['with a stale SSL_CERT_FILE beside --ca-file', ['--ca-file', 'ca.pem'], { SSL_CERT_FILE: '/no/such/file' }],
    ['with --insecure', ['--insecure'], {}],
    ['with a configuration that is named', ['--config', 'by-host.yaml'], {}],
    ['with a configuration that is named and says insecure', ['--config', 'insecure.yaml'], {}],
  ] as const)('is spoken to %s', async (_, flags, env) => {
    const { stdout, stderr, exitCode } = await cli(folder, ['inspect', '--digest', image, ...flags], { env });
    expect(exitCode, stderr).toBe(0);
    expect(stdout).toMatch(/^sha256:/);
  });

  it('--insecure is meant for the registry named first, not for the sources', async () => {
    const target = await startRegistry();
    try {
      const args = ['publish', `${target.host}/debian/debian:x`, image, '--insecure', '--retries', '0'];
      const { stderr, exitCode } = await cli(folder, args);
      expect(stderr).toContain('TLS_FAILED (exit 5)');
      expect(stderr).toContain(registry.host);
      expect(exitCode).toBe(5);
      // What the hint says is enough to go on.
      writeFileSync(join(folder, 'pasted'), /`(.*)` into a file/.exec(stderr)?.[1] ?? '');
      const again = await cli(folder, ['publish', `${target.host}/debian/debian:x`, image, '--config', 'pasted']);
      expect(again.exitCode, again.stderr).toBe(0);
    } finally {
      await target.close();
    }
  });
});

describe('--ca-file', () => {
  it.each([
    ['missing.pem', 'cannot read the file of --ca-file: missing.pem (ENOENT)', 8],
    ['empty.pem', 'the file of --ca-file holds no usable certificate: empty.pem', 2],
    ['broken.pem', 'the file of --ca-file holds no usable certificate: broken.pem', 2],
  ])('%s is told', async (name, message, code) => {
    const { stderr, exitCode } = await cli(folder, ['inspect', image, '--ca-file', name]);
    expect(stderr).toContain(message);
    expect(exitCode).toBe(code);
  });
});

describe('a proxy of the environment', () => {
  it('is what a registry beyond this machine is spoken to by', async () => {
    const asked: string[] = [];
    const proxy = createServer((request, response) => {
      asked.push(request.url ?? '');
      response.writeHead(404).end('{}');
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    try {
      const { port } = proxy.address() as AddressInfo;
      const env = { HTTP_PROXY: `http://127.0.0.1:${port}` };
      const { exitCode } = await cli(folder, ['inspect', 'registry.test/a/b:1', '--plain-http'], { env });
      expect(exitCode).toBe(4);
      expect(asked).toEqual(['http://registry.test/v2/a/b/manifests/1']);
    } finally {
      proxy.close();
    }
  });

  it('that is no proxy is told', async () => {
    const env = { HTTPS_PROXY: 'socks5://user:hunter2@127.0.0.1:1' };
    const { stderr, exitCode } = await cli(folder, ['inspect', 'registry.test/a/b:1'], { env });
    expect(stderr).toContain('HTTPS_PROXY');
    expect(stderr).not.toContain('hunter2');
    expect(exitCode).toBe(2);
  });
});
