import { describe, expect, test } from 'vitest';
import { digestOf } from '../../src/model/digest.ts';
import { clientOf, failure, script, serve, verb, world } from './fixture.ts';

const DIGEST = digestOf(Buffer.from('layer'));

describe('a mount that is led elsewhere, or nowhere', () => {
  describe.each([301, 302, 303])('%i', (status) => {
    test.each(['/v2/elsewhere', 'http://OTHER/v2/', 'http://169.254.169.254/', undefined])(
      'is a refusal that bars the source, and nothing is sent to where it leads: %s',
      async (to) => {
        const other = await script({ status: 201 });
        const [, port = ''] = other.host.split(':');
        const location = to?.replace('OTHER', other.host);
        const server = await script({ status, headers: location === undefined ? {} : { location } });
        // A client that went there would come to the other server, wherever the address is.
        const { client } = world(undefined, {
          connectTo: (host) => (host === '127.0.0.1' ? undefined : { host: '127.0.0.1', port }),
        });
        const answer = await client(server.host).mountBlob('a', DIGEST, 'b', verb());
        expect(answer).toEqual({
          kind: 'refused',
          sourceBarred: true,
          why: `mount answered with a redirect (${status})`,
        });
        expect(server.seen.map(({ method }) => method)).toEqual(['POST']);
        expect(other.seen).toHaveLength(0);
      },
    );
  });

  test.each([307, 308])('%i to another origin ends the run, and nothing is sent there', async (status) => {
    const other = await script({ status: 201 });
    const server = await script({ status, headers: { location: `http://${other.host}/` } });
    const error = await failure(clientOf(server).mountBlob('a', DIGEST, 'b', verb()));
    expect(error).toMatchObject({ code: 'ORIGIN_REFUSED', exitCode: 7 });
    expect(other.seen).toHaveLength(0);
  });

  test.each([307, 308])('%i within the origin is followed', async (status) => {
    const server = await script({ status, headers: { location: '/moved' } }, { status: 201 });
    expect(await clientOf(server).mountBlob('a', DIGEST, 'b', verb())).toEqual({ kind: 'mounted' });
    expect(server.seen.map(({ method, url }) => `${method} ${url}`).at(-1)).toBe('POST /moved');
  });

  test('silence is asked three times, and bars the source: each blob would be waited for as long', async () => {
    const server = await serve(() => undefined);
    const { client } = world(undefined, { timeouts: { headers: 100 } });
    expect(await client(server.host).mountBlob('a', DIGEST, 'b', verb())).toEqual({
      kind: 'refused',
      sourceBarred: true,
      why: 'mount got no answer in time',
    });
    expect(server.seen).toHaveLength(3);
  });
});
