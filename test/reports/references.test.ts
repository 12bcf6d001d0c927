import { describe, expect, it } from 'vitest';
import { parseReference, requestTarget } from '../../src/model/reference.ts';
import type { LaidCase } from '../helpers/cases.ts';
import { layCase } from '../helpers/cases.ts';
import { seedImage } from '../helpers/images.ts';
import { requests, withRegistry } from '../helpers/registry.ts';
import { hasIPv6, inspected, withNames } from './names.ts';
import { program, published } from './report.ts';

/** One line of a `refs.json`. */
type Line = {
  readonly in: string;
  readonly host?: string;
  readonly repo?: string;
  readonly tag?: string;
  readonly digest?: string;
  readonly requestUses?: 'digest' | 'tag';
  readonly error?: string;
};

async function linesOf(id: string): Promise<readonly Line[]> {
  const laid: LaidCase = await layCase(id);
  return JSON.parse(await laid.file('refs.json')) as readonly Line[];
}

const CASES = [
  ['REF-01', 'a digest beside a tag decides, and a port belongs to the host'],
  ['REF-02', 'capitals in a repository are refused with the name that was meant'],
  ['REF-03', 'localhost is a host where a path follows, and a name where none does'],
  ['NET-07', 'IPv6 hosts are taken in brackets, and asked for in brackets'],
] as const;

for (const [id, rule] of CASES) {
  describe(`${id}: ${rule}`, async () => {
    const lines = await linesOf(id);
    it.each(lines.filter(({ error }) => error === undefined))('$in', (line) => {
      const reference = parseReference(line.in);
      const { host, repository, tag, digest } = reference;
      expect(line.host?.split(' or ')).toContain(host);
      expect({ repository, tag, digest }).toEqual({ repository: line.repo, tag: line.tag, digest: line.digest });
      if (line.requestUses !== undefined) expect(requestTarget(reference)).toBe(line[line.requestUses]);
    });
    const refused = lines.filter(({ error }) => error !== undefined);
    if (refused.length === 0) return;
    it.each(refused)('$in is refused by the program: exit code 2, and no connection', async (line) => {
      for (const words of [
        ['inspect', line.in],
        ['publish', 'localhost:1/t/all:1', line.in],
        ['publish', line.in, 'localhost:1/t/a:1'],
      ]) {
        const { stdout, stderr, exitCode } = await program([], words);
        expect(stderr).toContain(line.error);
        expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 2 });
      }
    });
  });
}

describe('on the wire', () => {
  it('REF-01: of tag and digest together the digest is asked for, though the tag has moved on', () =>
    withRegistry({}, async (registry) => {
      const old = seedImage(registry, 'team/app', '1.4.2', { seed: 'old' });
      seedImage(registry, 'team/app', '1.4.2', { seed: 'new' });
      const source = `${registry.host}/team/app:1.4.2@${old.descriptor.digest}`;
      const { entries } = published(registry, await program([registry], ['publish', `${registry.host}/t/all`, source]));
      expect(entries.map(({ digest }) => digest)).toEqual([old.descriptor.digest]);
      const asked = requests(registry, 'manifestGet').filter(({ repository }) => repository === 'team/app');
      expect(asked.map(({ reference }) => reference)).toEqual([old.descriptor.digest]);
      expect(registry.tags('t/all')).toEqual(['latest']);
    }));

  it('REF-03: localhost/img is asked of this machine, port 80, and not of Docker Hub', () =>
    withRegistry({}, async (registry) => {
      const image = seedImage(registry, 'img', '1');
      await withNames({ reach: { 'localhost:80': registry.host } }, async (world) => {
        expect((await inspected('localhost/img:1', world)).digest).toBe(image.descriptor.digest);
        expect(world.connected).toEqual(['localhost:80']);
      });
    }));

  it.skipIf(!hasIPv6())('NET-07: a registry at [::1] is published to, from and verified', () =>
    withRegistry({ options: { address: '::1' } }, async (registry) => {
      expect(registry.host).toMatch(/^\[::1\]:\d+$/);
      const image = seedImage(registry, 'app', '1');
      const target = `${registry.host}/t/all:1`;
      const { entries } = published(registry, await program([registry], ['publish', target, `${registry.host}/app:1`]));
      expect(entries.map(({ digest }) => digest)).toEqual([image.descriptor.digest]);
      expect(new Set(registry.journal.map(({ headers }) => headers['host']))).toEqual(new Set([registry.host]));
      expect((await program([registry], ['verify', target])).exitCode).toBe(0);
    }),
  );
});
