import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseChallenges } from '../../src/auth/challenge.ts';

const plain = (header: string) =>
  parseChallenges(header).map(({ scheme, parameters }) => [scheme, Object.fromEntries(parameters)]);

describe('a challenge', () => {
  it.each([
    ['Basic realm="Registry"', [['basic', { realm: 'Registry' }]]],
    ['basic', [['basic', {}]]],
    [
      'Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="repository:a/b:pull,push"',
      [
        [
          'bearer',
          { realm: 'https://auth.docker.io/token', service: 'registry.docker.io', scope: 'repository:a/b:pull,push' },
        ],
      ],
    ],
    // Quay, Harbor and others put spaces after the commas, or commas before the first parameter.
    ['Bearer realm="r" , service="s"', [['bearer', { realm: 'r', service: 's' }]]],
    ['Bearer ,realm="r"', [['bearer', { realm: 'r' }]]],
    ['BEARER REALM = "r"', [['bearer', { realm: 'r' }]]],
    [
      'Bearer realm=https://auth.test/token,service=s',
      [['bearer', { realm: 'https://auth.test/token', service: 's' }]],
    ],
    ['Bearer realm="a \\"quoted\\" \\\\ word"', [['bearer', { realm: 'a "quoted" \\ word' }]]],
    ['Bearer realm="a, Basic realm=b"', [['bearer', { realm: 'a, Basic realm=b' }]]],
    // Several schemes in one line, as they are when several headers were joined.
    [
      'Basic realm="a", Bearer realm="b",service="s"',
      [
        ['basic', { realm: 'a' }],
        ['bearer', { realm: 'b', service: 's' }],
      ],
    ],
    [
      'Negotiate, NTLM, Basic realm="a"',
      [
        ['negotiate', {}],
        ['ntlm', {}],
        ['basic', { realm: 'a' }],
      ],
    ],
    [
      'Negotiate YII=, Basic realm="a"',
      [
        ['negotiate', {}],
        ['basic', { realm: 'a' }],
      ],
    ],
    ['Negotiate abc==', [['negotiate', {}]]],
    // distribution, to a mount whose source the token does not cover.
    [
      'Bearer realm="r",scope="repository:t:pull,push repository:s:pull",error="insufficient_scope"',
      [['bearer', { realm: 'r', scope: 'repository:t:pull,push repository:s:pull', error: 'insufficient_scope' }]],
    ],
    ['Bearer realm="first",realm="second"', [['bearer', { realm: 'first' }]]],
    ['Bearer error="insufficient_scope",realm="r"', [['bearer', { error: 'insufficient_scope', realm: 'r' }]]],
    // Broken ones.
    ['', []],
    [',,, ', []],
    ['realm="a"', []],
    ['"a", Basic realm="b"', [['basic', { realm: 'b' }]]],
    ['Bearer realm="never ends', [['bearer', { realm: 'never ends' }]]],
    ['Bearer realm="ends in \\', [['bearer', { realm: 'ends in ' }]]],
    ['Bearer realm=', [['bearer', {}]]],
    [
      'Bearer {}, Basic realm="b"',
      [
        ['bearer', {}],
        ['basic', { realm: 'b' }],
      ],
    ],
  ])('%j is read', (header, challenges) => {
    expect(plain(header)).toEqual(challenges);
  });

  it('is read as it was written, whatever its parameters hold', () => {
    const token = fc.stringMatching(/^[a-z][a-z0-9_-]{0,8}$/);
    const value = fc.string({ unit: fc.constantFrom(',', '"', '\\', ' ', '=', 'a', 'é', ':', '/'), maxLength: 12 });
    const challenge = fc.record({
      scheme: token,
      parameters: fc.dictionary(token, value, { minKeys: 1, maxKeys: 4, noNullPrototype: true }),
    });
    fc.assert(
      fc.property(fc.array(challenge, { maxLength: 4 }), (challenges) => {
        const header = challenges
          .map(({ scheme, parameters }) => {
            const quote = (text: string) => `"${text.replace(/[\\"]/g, '\\$&')}"`;
            return `${scheme} ${Object.entries(parameters)
              .map(([name, text]) => `${name}=${quote(text)}`)
              .join(', ')}`;
          })
          .join(', ');
        expect(plain(header)).toEqual(challenges.map(({ scheme, parameters }) => [scheme, parameters]));
      }),
      { numRuns: 1000 },
    );
  });

  it('never fails and never takes long', () => {
    const nasty = fc.string({
      unit: fc.constantFrom(',', '"', '\\', ' ', '=', 'a', 'Bearer ', '\t', '{', 'é'),
      maxLength: 2000,
    });
    fc.assert(
      fc.property(fc.oneof(nasty, fc.string({ unit: 'binary' })), (header) => {
        expect(Array.isArray(parseChallenges(header))).toBe(true);
      }),
      { numRuns: 2000 },
    );
    for (const part of ['a ', 'a=', 'a="', '"', ',', '\\', 'a=b,', 'Bearer a=']) {
      // The best of three: a busy machine takes its time for anything once.
      const took = [1, 2, 3].map(() => {
        const start = performance.now();
        parseChallenges(part.repeat(64 * 1024));
        return performance.now() - start;
      });
      expect(Math.min(...took)).toBeLessThan(200);
    }
  });
});
