import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { publish } from '../../src/publish/publish.ts';
import { startRegistry } from '../../src/registry-server/index.ts';
import { seedImage } from '../helpers/images.ts';
import { requestOf } from '../helpers/publishing.ts';
import { requests, withDirectory, withRegistry } from '../helpers/registry.ts';
import { selfSigned } from '../http/certificate.ts';
import { failure } from '../http/fixture.ts';
import { withNames } from './names.ts';
import { expectWords, loginFor, loginsShown, PRIVATE, publishAt, published } from './report.ts';

describe('where logins go', () => {
  it('AUT-10: Authorization does not follow a redirect to the storage host', () =>
    withRegistry(
      { options: { profile: 'docker-hub', changes: { auth: { anonymousPull: false }, mount: { mode: 'ignore' } } } },
      async (hub) => {
        seedImage(hub, 't/a', '1');
        const logins = loginFor(hub.host, 'robot', 'secret');
        published(hub, await publishAt(hub, 't/all:1', ['t/a:1'], { logins }));
        const stored = requests(hub, 'storage');
        expect(new Set(requests(hub, 'blobGet').map(({ status }) => status))).toEqual(new Set([307]));
        expect(stored.length).toBeGreaterThan(0);
        for (const { authorization, status, listener } of stored) {
          expect({ authorization, status, listener }).toEqual({
            authorization: 'none',
            status: 200,
            listener: 'storage',
          });
        }
      },
    ));

  it('AUT-10: a redirect from https to http is refused before anything is sent there: exit code 7', () => {
    const tls = selfSigned(['127.0.0.1']);
    return withRegistry({ options: { changes: PRIVATE, tls } }, async (registry) => {
      const elsewhere = await startRegistry();
      try {
        seedImage(registry, 't/a', '1');
        const headers = { Location: `${elsewhere.url}/v2/stolen` };
        const redirect = { kind: 'answer', status: 307, headers } as const;
        registry.addFault({ operation: 'blobGet', times: Number.POSITIVE_INFINITY, action: redirect });
        const logins = loginFor(registry.host, 'robot', 'secret');
        const { stderr, exitCode } = await withDirectory(async (folder) => {
          const file = join(folder, 'ca.pem');
          await writeFile(file, tls.cert);
          return publishAt(registry, 't/all:1', ['t/a:1'], { logins, flags: ['--ca-file', file] });
        });
        expectWords(stderr, [elsewhere.host, 'https to http']);
        expect(exitCode).toBe(7);
        expect(elsewhere.journal).toEqual([]);
        expect(registry.tagMoves).toEqual([]);
      } finally {
        await elsewhere.close();
      }
    });
  });

  it('AUT-11: a forgotten registry is told by the full name that was asked for, and by the login that was not found', async () => {
    const host = 'registry-1.docker.io';
    const tls = selfSigned([host]);
    const options = { profile: 'docker-hub', changes: { auth: { anonymousPull: false } }, tls };
    await withRegistry({ options }, async (hub) => {
      const logins = JSON.stringify(loginFor('registry.example.test', 'robot', 'secret'));
      await withNames({ reach: { [`${host}:443`]: hub.host }, logins, network: { ca: [tls.cert] } }, async (world) => {
        const request = requestOf('acme/app:1', ['acme/app:amd64']);
        const error = await failure(publish(request, world.ports, AbortSignal.timeout(15_000)));
        expect(error.exitCode).toBe(3);
        expect(error.message).toContain('docker.io/acme/app');
        expect(error.message).toContain('no login was found for docker.io/acme/app');
        expect(error.hint).toContain('HOST/acme/app');
        expect(world.connected).toEqual([`${host}:443`]);
      });
      expect(loginsShown(hub)).toEqual([]);
      expect(hub.tagMoves).toEqual([]);
    });
  });
});
