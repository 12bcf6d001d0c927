import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { RegistryUser } from '../../src/registry-server/index.ts';
import { layCase } from '../helpers/cases.ts';
import { seedImage } from '../helpers/images.ts';
import { requests, withDirectory, withRegistry } from '../helpers/registry.ts';
import { selfSigned } from '../http/certificate.ts';
import { closeAll, serve } from '../http/fixture.ts';
import { inspected, withNames } from './names.ts';
import { expectWords, loginFor, loginsShown, PRIVATE, publishAt, published, withCase } from './report.ts';

afterEach(closeAll);

/** The logins of a case's `config.json`, as users of a registry. */
async function usersOf(id: string): Promise<{ readonly logins: string; readonly users: readonly RegistryUser[] }> {
  const laid = await layCase(id);
  const logins = await laid.file('config.json');
  const { auths } = JSON.parse(logins) as { readonly auths: Readonly<Record<string, { readonly auth?: string }>> };
  const users = Object.values(auths).map(({ auth = '' }) => {
    const [name = '', password = ''] = Buffer.from(auth, 'base64').toString().split(/:(.*)/s, 2);
    return { name, password };
  });
  return { logins, users };
}

async function expectationsOf(id: string): Promise<Readonly<Record<string, unknown>>> {
  return (await layCase(id)).expect;
}

describe('where logins are found', () => {
  it('AUT-01: the login of https://index.docker.io/v1/ is that of Docker Hub by each of its names', async () => {
    const { logins, users } = await usersOf('AUT-01');
    const laid = await layCase('AUT-01');
    const [, list = ''] = /<each of: (.*)>/.exec(await laid.file('run.txt')) ?? [];
    const host = String(laid.expect['requestHost']);
    const tls = selfSigned([host]);
    const options = { profile: 'docker-hub', changes: { auth: { anonymousPull: false } }, users, tls };
    await withRegistry({ options }, async (hub) => {
      seedImage(hub, String(laid.expect['repository']), 'latest');
      expect(list.split(', ')).toHaveLength(5);
      for (const reference of list.split(', ')) {
        hub.clearJournal();
        await withNames(
          { reach: { [`${host}:443`]: hub.host }, logins, network: { ca: [tls.cert] } },
          async (world) => {
            await inspected(reference, world);
            expect(world.connected).toEqual([`${host}:443`]);
          },
        );
        expect(loginsShown(hub), reference).toEqual(users.map(({ name, password }) => `${name}:${password}`));
        expect(String(laid.expect['credentialUsed'])).toContain(users[0]?.name);
        const [read] = requests(hub, 'manifestGet').filter(({ status }) => status === 200);
        expect(read?.headers['host']).toBe(host);
        expect(read?.repository).toBe(laid.expect['repository']);
      }
    });
  });

  it('AUT-02: logins are found whether their key is a host, an address or a path', async () => {
    const { logins, users } = await usersOf('AUT-02');
    const wanted = (await expectationsOf('AUT-02'))['user'] as Readonly<Record<string, string>>;
    await withRegistry({ options: { changes: PRIVATE, users } }, async (registry) => {
      seedImage(registry, 'x/y', '1');
      for (const [host, user] of Object.entries(wanted)) {
        registry.clearJournal();
        const reach = { [host.includes(':') ? host : `${host}:80`]: registry.host };
        const network = { hosts: { [host]: { plainHttp: true } } };
        await withNames({ reach, logins, network }, (world) => inspected(`${host}/x/y:1`, world));
        expect(
          loginsShown(registry).map((login) => login.split(':')[0]),
          host,
        ).toEqual([user]);
      }
    });
  });

  it('AUT-03: an empty entry beside a store sends the question to the store', async () => {
    const user = String((await expectationsOf('AUT-03'))['user']);
    await withCase(
      'AUT-03',
      async ({ registry, run }) => {
        seedImage(registry, 'x/y', '1');
        const finished = await run();
        expect(finished.exitCode, finished.stderr).toBe(0);
        expect(loginsShown(registry)).toEqual([`${user}:s`]);
      },
      { hosts: ['h.example.test'], changes: PRIVATE, users: [{ name: user, password: 's' }] },
    );
  });

  it('AUT-04: a login is split at its first colon, and nothing of the password is lost', async () => {
    const wanted = await expectationsOf('AUT-04');
    const [name, password] = [String(wanted['user']), String(wanted['password'])];
    await withCase(
      'AUT-04',
      async ({ registry, run, script }) => {
        seedImage(registry, 'x/y', '1');
        const finished = await run(`${script.trim()} --debug`);
        expect(finished.exitCode, finished.stderr).toBe(0);
        expect(loginsShown(registry)).toEqual([`${name}:${password}`]);
        expect(finished.stdout + finished.stderr).not.toContain(password);
      },
      { hosts: ['i.example.test'], changes: PRIVATE, users: [{ name, password }] },
    );
  });

  it('AUT-05: user name and password without auth, or with an empty one, are a login', async () => {
    const name = String((await expectationsOf('AUT-05'))['user']);
    await withCase(
      'AUT-05',
      async ({ registries, run, host, script }) => {
        const [command = ''] = script.split(';');
        for (const one of ['j.example.test', 'k.example.test']) {
          const registry = registries[one];
          if (registry === undefined) throw new Error(`${one} was not started`);
          seedImage(registry, 'x/y', '1');
          const finished = await run(command.replace(host('j.example.test'), host(one)));
          expect(finished.exitCode, finished.stderr).toBe(0);
          expect(loginsShown(registry)).toEqual([`${name}:p`]);
        }
      },
      { hosts: ['j.example.test', 'k.example.test'], changes: PRIVATE, users: [{ name, password: 'p' }] },
    );
  });
});

describe('identity tokens', () => {
  it('AUT-06: an identity token is exchanged by POST; the zero GUID beside it is shown to nobody', () =>
    withCase(
      'AUT-06',
      async ({ registry, run, host, expect: wanted }) => {
        const { method, contentType, fields } = wanted['tokenRequest'] as Readonly<Record<string, unknown>>;
        const server = await serve((_request, response) =>
          response.setHeader('content-type', 'application/json').end('{"access_token":"exchanged"}'),
        );
        const challenge = `Bearer realm="http://${server.host}/oauth2/token",service="${host('l.example.test')}",scope="repository:x/y:pull"`;
        const headers = { 'WWW-Authenticate': challenge };
        registry.addFault({ operation: 'manifestGet', action: { kind: 'answer', status: 401, headers } });
        seedImage(registry, 'x/y', '1');
        const finished = await run();
        expect(finished.exitCode, finished.stderr).toBe(0);
        expect(server.requests).toHaveLength(1);
        const [asked] = server.requests;
        expect(asked).toMatchObject({ method, headers: { 'content-type': contentType } });
        expect(asked?.headers.authorization).toBeUndefined();
        expect(Object.fromEntries(new URLSearchParams(asked?.body.toString()))).toMatchObject(fields as object);
        expect(registry.journal.at(-1)?.headers['authorization']).toBe('Bearer exchanged');
        expect(loginsShown(registry), String(wanted['forbidden'])).toEqual([]);
      },
      { hosts: ['l.example.test'] },
    ));

  it('AUT-06: with such a login a whole publish goes through', () => {
    const identityToken = 'REFRESH-TOKEN-PLACEHOLDER';
    const users = [{ name: 'azure', password: 'not known to docker', identityToken }];
    return withRegistry(
      { options: { profile: 'acr', changes: { auth: { anonymousPull: false } }, users } },
      async (acr) => {
        seedImage(acr, 't/a', '1');
        const auth = loginFor(acr.host, '00000000-0000-0000-0000-000000000000', '').auths[acr.host]?.auth;
        const logins = { auths: { [acr.host]: { auth, identitytoken: identityToken } } };
        const finished = await publishAt(acr, 't/all:1', ['t/a:1'], { logins, flags: ['--debug'] });
        published(acr, finished);
        expect(new Set(requests(acr, 'token').map(({ method }) => method))).toEqual(new Set(['POST']));
        expect(loginsShown(acr)).toEqual([]);
        expect(finished.stderr).not.toContain(identityToken);
      },
    );
  });
});

describe('credential helpers', () => {
  const says = (user: string) => `read server; echo '{"Username":"${user}","Secret":"s"}'`;
  const options = {
    changes: PRIVATE,
    users: [
      { name: 'own', password: 's' },
      { name: 'store', password: 's' },
    ],
  };

  it('AUT-08: the helper that is named for the host is asked, and the store is not', () =>
    withRegistry({ options }, (registry) =>
      withDirectory(async (folder) => {
        const asked = join(folder, 'the store was asked');
        seedImage(registry, 't/a', '1');
        const finished = await publishAt(registry, 't/all:1', ['t/a:1'], {
          logins: { credHelpers: { [registry.host]: 'own' }, credsStore: 'store' },
          programs: {
            'docker-credential-own': says('own'),
            'docker-credential-store': `touch '${asked}'; ${says('store')}`,
          },
        });
        published(registry, finished);
        expect(loginsShown(registry)).toEqual(['own:s']);
        expect(existsSync(asked)).toBe(false);
      }),
    ));

  it('AUT-08: a helper that fails is an error that shows its words, also where nobody needs a login', () =>
    withRegistry({}, async (registry) => {
      seedImage(registry, 't/a', '1');
      const { stdout, stderr, exitCode } = await publishAt(registry, 't/all:1', ['t/a:1'], {
        logins: { credHelpers: { [registry.host]: 'own' }, credsStore: 'store' },
        programs: {
          'docker-credential-own': 'echo "the vault is sealed" >&2; exit 2',
          'docker-credential-store': says('store'),
        },
      });
      expectWords(stderr, ['docker-credential-own', 'the vault is sealed', registry.host]);
      expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 3 });
      expect(registry.journal).toEqual([]);
    }));
});
