import { describe, expect, it } from 'vitest';
import { publishRequest } from '../../src/cli/request.ts';
import { formatReference } from '../../src/model/reference.ts';
import { requestOf } from '../helpers/publishing.ts';

const DIGEST = `sha256:${'a'.repeat(64)}`;

function targets(target: string, tags: readonly string[]): readonly string[] {
  return publishRequest({ target, sources: ['b'], tags }).targets.map(formatReference);
}

describe('a publish request', () => {
  it('has defaults for everything but target and sources', () => {
    const sources = ['linux/arm=acme/arm', DIGEST];
    expect(publishRequest({ target: 'acme/app:1', sources })).toEqual({
      ...requestOf('acme/app:1', sources),
      targets: [{ host: 'docker.io', repository: 'acme/app', tag: '1' }],
      sources: [
        {
          reference: { host: 'docker.io', repository: 'acme/arm', tag: 'latest' },
          platform: { os: 'linux', architecture: 'arm' },
        },
        { reference: { host: 'docker.io', repository: 'acme/app', digest: DIGEST } },
      ],
    });
  });

  it('needs a source, also from callers that no compiler checks', () => {
    for (const sources of [[], undefined, 'a string']) {
      const options = { target: 'reg.test/a:1', sources } as unknown as Parameters<typeof publishRequest>[0];
      expect(() => publishRequest(options)).toThrow(/there is no source/);
    }
  });

  it('takes a tag of the repository of the target, or a reference anywhere, and each once', () => {
    expect(targets('acme/app:1', ['2', 'acme/app:3', 'docker.io/acme/app:2', '1', 'ghcr.io/acme/app:1'])).toEqual([
      'docker.io/acme/app:1',
      'docker.io/acme/app:2',
      'docker.io/acme/app:3',
      'ghcr.io/acme/app:1',
    ]);
  });

  it.each([
    [`acme/app@${DIGEST}`, 'cannot have a digest'],
    ['-x', 'not a tag'],
    ['', 'not a tag'],
  ])('refuses --tag %j', (tag, message) => {
    expect(() => targets('acme/app:1', [tag])).toThrow(message);
  });

  it('refuses a target with a digest, and an empty set of expected platforms', () => {
    expect(() => targets(`acme/app:1@${DIGEST}`, [])).toThrow('cannot have a digest');
    expect(() => publishRequest({ target: 'a', sources: ['b'], expectPlatforms: [] })).toThrow(
      'no platform is expected',
    );
  });
});
