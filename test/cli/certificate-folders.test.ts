import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readAuthorities } from '../../src/cli/authorities.ts';
import { certificateFolders, readCertificateFolders } from '../../src/cli/certificate-folders.ts';
import { DEFAULT_NETWORK } from '../../src/cli/settings.ts';
import { asOrdinaryUser } from '../helpers/other-user.ts';
import { selfSigned } from '../http/certificate.ts';
import { ask, client, closeAll, failure, resolver, serve, textOf } from '../http/fixture.ts';

const HOST = 'registry.example.test:5000';
const server = selfSigned(['registry.example.test']);
const own = selfSigned(['me']);
let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'certs.d-'));
});

afterEach(async () => {
  await closeAll();
  rmSync(root, { recursive: true });
});

/** Writes files below a folder for all hosts, and returns that folder. */
function lay(folder: string, files: Readonly<Record<string, string>>): string {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(root, folder, name, '..'), { recursive: true });
    writeFileSync(join(root, folder, name), text);
  }
  return join(root, folder);
}

async function of(files: Readonly<Record<string, string>>) {
  return (await readCertificateFolders([lay('certs.d', files)])).get(HOST);
}

describe('certs.d', () => {
  it('holds authorities and what a client shows, by host and port', async () => {
    const found = await of({
      [`${HOST}/ca.crt`]: server.cert,
      [`${HOST}/me.cert`]: own.cert,
      [`${HOST}/me.key`]: own.key,
      [`${HOST}/README`]: 'nothing',
      'other.example.test/ca.crt': own.cert,
      'a file beside the hosts': 'nothing',
    });
    expect(found).toEqual({ ca: [server.cert], clientCertificate: { cert: own.cert, key: own.key } });
  });

  it('is looked for where docker and podman do, the folders of the user first', async () => {
    expect(certificateFolders(() => '/home/me')).toEqual([
      '/home/me/.docker/certs.d',
      '/home/me/.config/containers/certs.d',
      '/etc/containers/certs.d',
      '/etc/docker/certs.d',
    ]);
    const homeless = () => {
      throw new Error('no home');
    };
    expect(certificateFolders(homeless)).toEqual(['/etc/containers/certs.d', '/etc/docker/certs.d']);
  });

  it('adds up over the folders; the first client certificate counts', async () => {
    const other = selfSigned(['other']);
    const first = lay('one', {
      [`${HOST}/a.crt`]: server.cert,
      [`${HOST}/a.cert`]: own.cert,
      [`${HOST}/a.key`]: own.key,
    });
    const second = lay('two', {
      [`${HOST}/b.crt`]: other.cert,
      [`${HOST}/b.cert`]: other.cert,
      [`${HOST}/b.key`]: other.key,
    });
    const found = await readCertificateFolders([first, join(root, 'missing'), second]);
    expect(found.get(HOST)).toEqual({
      ca: [server.cert, other.cert],
      clientCertificate: { cert: own.cert, key: own.key },
    });
  });

  it.each([
    ['an authority that is not PEM', { 'ca.crt': 'nonsense' }, 'ca.crt', 'CONFIG_INVALID'],
    [
      'an authority that is broken',
      { 'ca.crt': '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n' },
      'ca.crt',
      'CONFIG_INVALID',
    ],
    ['a certificate that is not PEM', { 'me.cert': 'nonsense', 'me.key': own.key }, 'me.cert', 'CONFIG_INVALID'],
    ['a key that is not PEM', { 'me.cert': own.cert, 'me.key': 'nonsense' }, 'me.key', 'CONFIG_INVALID'],
    ['a key of another', { 'me.cert': server.cert, 'me.key': own.key }, 'me.key', 'CONFIG_INVALID'],
    ['a certificate without a key', { 'me.cert': own.cert }, 'has no me.key beside it', 'CONFIG_INVALID'],
    ['a key without a certificate', { 'me.key': own.key }, 'has no me.cert beside it', 'CONFIG_INVALID'],
    ['a folder instead of a file', { 'ca.crt/x': '' }, 'ca.crt (EISDIR)', 'FILE_FAILED'],
  ])('tells of %s by its name', async (_what, files: Readonly<Record<string, string>>, words, code) => {
    const named = Object.fromEntries(Object.entries(files).map(([name, text]) => [`${HOST}/${name}`, text]));
    const found = await of({ ...named, 'fine.example.test/ca.crt': server.cert });
    expect(found?.problem).toMatchObject({ code });
    expect(found?.problem?.message).toContain(words);
    expect(found?.problem?.message).toContain(root);
  });

  it('tells of a file that may not be read', async () => {
    const folder = lay('certs.d', { [`${HOST}/ca.crt`]: server.cert });
    chmodSync(join(folder, HOST, 'ca.crt'), 0);
    chmodSync(root, 0o755);
    const found = await asOrdinaryUser(() => readCertificateFolders([folder]));
    expect(found.get(HOST)?.problem?.message).toContain('ca.crt (EACCES)');
  });
});

describe('authorities', () => {
  it('of certs.d stand beside those of the configuration, whose words on the host go on to count', async () => {
    const folder = lay('certs.d', { [`${HOST}/ca.crt`]: server.cert });
    writeFileSync(join(root, 'ca.pem'), own.cert);
    const hosts = { [HOST]: { insecure: true, caFile: join(root, 'ca.pem') } };
    const { hosts: settings } = await readAuthorities({ ...DEFAULT_NETWORK, hosts }, {}, [folder]);
    expect(settings[HOST]).toEqual({ insecure: true, ca: [own.cert, server.cert] });
  });

  it('of SSL_CERT_DIR are those of all files in its folders, each once', async () => {
    const one = lay('one', { 'a.pem': server.cert, '1234.0': server.cert, note: 'nothing' });
    const two = lay('two', { 'b.pem': own.cert });
    const { ca } = await readAuthorities(DEFAULT_NETWORK, { SSL_CERT_DIR: `${one}:${join(root, 'no')}:${two}` });
    expect([...ca].sort()).toEqual([server.cert, own.cert].sort());
  });
});

describe('a host with a folder in certs.d', () => {
  async function world(files: Readonly<Record<string, string>>) {
    const options = { ...server, ca: [own.cert], requestCert: true, rejectUnauthorized: true };
    const { port } = await serve((_request, response) => response.end('ok'), options);
    const authorities = await readAuthorities(DEFAULT_NETWORK, {}, [lay('certs.d', files)]);
    return client({
      ...authorities,
      lookup: resolver(() => ['203.0.113.7']),
      connectTo: () => ({ host: '127.0.0.1', port: String(port) }),
    });
  }

  it('is trusted by it and shown its certificate', async () => {
    const files = { [`${HOST}/ca.crt`]: server.cert, [`${HOST}/me.cert`]: own.cert, [`${HOST}/me.key`]: own.key };
    expect(await textOf(await ask(await world(files), HOST, '/v2/'))).toBe('ok');
    expect((await failure(ask(await world(files), 'registry.example.test', '/v2/'))).code).toBe('TLS_FAILED');
  });

  it('is not spoken to when something is wrong there', async () => {
    const error = await failure(ask(await world({ [`${HOST}/ca.crt`]: 'nonsense' }), HOST, '/v2/'));
    expect(error).toMatchObject({ code: 'CONFIG_INVALID', exitCode: 2 });
    expect(error.message).toContain(join(HOST, 'ca.crt'));
  });
});
