import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatReference, parseReference } from '../../src/model/reference.ts';
import { byDockerName, dockerFileName } from '../../src/store/docker-name.ts';
import { draftFileName } from '../../src/store/file-name.ts';

/** References in full, of few characters, so that clashes are likely. */
const references = fc
  .tuple(
    fc.constantFrom('docker.io', 'localhost:5000', 'reg.example.test', '127.0.0.1:5000'),
    fc.stringMatching(/^[ab](?:[-_./][ab]){0,4}$/),
    fc.option(fc.stringMatching(/^[abAB](?:[-_.][abAB]){0,3}$/), { nil: undefined }),
    fc.boolean(),
  )
  .map(([host, path, tag, digested]) => {
    const digest = digested ? `@sha256:${'a1'.repeat(32)}` : '';
    return formatReference(parseReference(`${host}/x/${path}${tag === undefined ? '' : `:${tag}`}${digest}`));
  });

describe('names of our files', () => {
  it('differ for different references, also where file names have no case', () => {
    fc.assert(
      fc.property(references, references, (one, other) => {
        expect(draftFileName(one).toLowerCase() === draftFileName(other).toLowerCase()).toBe(one === other);
      }),
    );
    expect(draftFileName('docker.io/a/b:V1').toLowerCase()).not.toBe(draftFileName('docker.io/a/b:v1').toLowerCase());
    expect(draftFileName('docker.io/a/q:x-1')).not.toBe(draftFileName('docker.io/a/q-x:1'));
  });

  it('fit into 255 bytes with all that is added, and are safe in every shell and on every system', () => {
    const longest = `${'h'.repeat(60)}.example:50000/${'r'.repeat(250)}:${'t'.repeat(128)}@sha256:${'a'.repeat(64)}`;
    for (const reference of [longest, 'con.example.test/x:1', 'docker.io/library/debian:latest']) {
      expect(`${draftFileName(reference)}.json.dead.01234567-0123-0123-0123-0123456789ab`.length).toBeLessThan(255);
      expect(draftFileName(reference)).toMatch(/^[a-z0-9][a-z0-9_]*-[a-f0-9]{64}$/);
    }
  });

  it('tell people which list it is', () => {
    expect(draftFileName('localhost:5000/debian/debian:bullseye')).toMatch(/^localhost_5000_debian_debian_bullseye-/);
  });
});

describe("docker's names", () => {
  it.each([
    ['127.0.0.1:5056/deb/all:bullseye', '127.0.0.1-5056_deb_all-bullseye'],
    ['docker.io/library/debian:latest', 'docker.io_library_debian-latest'],
    [`h.example/a/b@sha256:${'0'.repeat(64)}`, `h.example_a_b@sha256-${'0'.repeat(64)}`],
  ])('of %s is %s', (reference, name) => {
    expect(dockerFileName(reference)).toBe(name);
  });

  it('may be one for two references', () => {
    expect(dockerFileName('h.example/q:x-1')).toBe(dockerFileName('h.example/q-x:1'));
    expect(byDockerName('h.example/q:x-1', 'h.example/q-x:1')).not.toBe(0);
  });

  it('sort as bytes do', () => {
    fc.assert(
      fc.property(fc.array(references), (list) => {
        const sorted = [...list].sort(byDockerName).map(dockerFileName);
        const bytes = list.map((one) => Buffer.from(dockerFileName(one))).sort(Buffer.compare);
        expect(sorted).toEqual(bytes.map(String));
      }),
    );
  });
});
