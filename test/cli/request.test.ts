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
    for (const sources of [[], undefined]) {
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

  it('guards an image at TARGET where a further tag is a reference, as imagetools create -t has it', () => {
    const guarded = (tags: readonly string[]) =>
      publishRequest({ target: 'acme/app:1', sources: ['b'], tags }).guardsImage;
    expect([[], ['2'], ['2', 'acme/app:3'], ['acme/app:1']].map(guarded)).toEqual([undefined, undefined, true, true]);
  });

  it('says of a digest in the place of TARGET that TARGET is missing, where further tags were named', () => {
    const hint = expect.stringMatching(/^TARGET is missing before the sources/);
    const target = `acme/app@${DIGEST}`;
    expect(() => publishRequest({ target, sources: ['b'], tags: ['acme/app:1'] })).toThrow(
      expect.objectContaining({ code: 'USAGE_INVALID', hint }),
    );
    expect(() => publishRequest({ target, sources: ['b'] })).toThrow(
      expect.objectContaining({ hint: expect.stringMatching(/^Leave out @/) }),
    );
  });

  it.each(['linux/arm64', 'Linux/ARM/v7', 'windows/amd64'])(
    'takes %s for a platform, not for an image of Docker Hub',
    (text) => {
      const error = expect.objectContaining({
        code: 'REFERENCE_INVALID',
        message: expect.stringContaining('is a platform, not an image'),
        hint: expect.stringContaining(`docker.io/${text}`),
      });
      expect(() => publishRequest({ target: 'acme/app:1', sources: [text] })).toThrow(error);
      expect(() => publishRequest({ target: text, sources: ['b'] })).toThrow(error);
      expect(() => publishRequest({ target: 'acme/app:1', sources: [`linux/amd64=${text}`] })).toThrow(error);
    },
  );

  it.each(['linux/arm64:1', 'docker.io/linux/arm64', 'linux/tool', 'acme/arm64', 'linux/arm64/tool'])(
    'takes %s for an image',
    (text) => {
      expect(publishRequest({ target: 'acme/app:1', sources: [text] }).sources).toHaveLength(1);
    },
  );
});
