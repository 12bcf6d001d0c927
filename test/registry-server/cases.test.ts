import { readdir } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { digestOf } from '../../src/model/digest.ts';
import { layCase, readBehaviour } from '../helpers/cases.ts';
import { send } from './http.ts';

const ids = (await readdir(new URL('../cases/', import.meta.url), { withFileTypes: true }))
  .filter((entry) => entry.isDirectory())
  .map((entry) => entry.name);

describe('layCase', () => {
  it.each(ids)('%s: laid out with the digests it names, foreign layers alone absent', async (id) => {
    const laid = await layCase(id);
    try {
      for (const registry of Object.values(laid.registries)) {
        for (const repository of registry.repositories()) {
          for (const tag of registry.tags(repository)) {
            const digest = registry.tagOf(repository, tag) ?? '';
            const manifest = registry.manifestOf(repository, tag);
            expect(manifest && digestOf(manifest.bytes)).toBe(digest);
            // The schema 1 image of MED-05 names a layer that the case does not need.
            expect(registry.missingFrom(repository, tag)).toHaveLength(
              id === 'MED-05' && repository === 't/old' ? 1 : 0,
            );
          }
        }
      }
      expect(laid.expect).toBeTypeOf('object');
    } finally {
      await laid.close();
    }
  });

  it('replaces the hosts of the case in any text, and no others', async () => {
    const laid = await layCase('MNT-01');
    try {
      const address = laid.host('reg.example.test');
      expect(address).toMatch(/^127\.0\.0\.1:\d+$/);
      expect(laid.text('reg.example.test/a other.example.test')).toBe(`${address}/a other.example.test`);
      expect(await laid.file('run.txt')).toContain(`${address}/acme/all:stable`);
      expect(() => laid.host('other.example.test')).toThrow(/no host/);
    } finally {
      await laid.close();
    }
  });

  it('starts more hosts when asked', async () => {
    const laid = await layCase('AUT-02', { hosts: ['a.example.test', 'd.example.test:5000'] });
    try {
      expect(laid.text('d.example.test:5000/x')).toBe(`${laid.host('d.example.test:5000')}/x`);
      expect(Object.keys(laid.registries)).toHaveLength(2);
    } finally {
      await laid.close();
    }
  });

  it('MNT-02: two digests are refused, the others mounted', async () => {
    const laid = await layCase('MNT-02');
    try {
      const registry = laid.registries['reg.example.test'];
      if (registry === undefined) throw new Error('no registry');
      const manifest = registry.manifestOf('lab/dav-x86', 'latest');
      const document = JSON.parse(manifest?.bytes.toString() ?? '') as {
        readonly layers: readonly { readonly digest: string }[];
      };
      const statuses: number[] = [];
      for (const { digest } of document.layers) {
        const path = `/v2/lab/dav/blobs/uploads/?mount=${digest}&from=lab/dav-x86`;
        statuses.push((await send(registry, 'POST', path)).status);
      }
      expect(new Set(statuses)).toEqual(new Set([201, 202]));
    } finally {
      await laid.close();
    }
  });
});

describe('readBehaviour', () => {
  it.each([{ teleport: '201' }, { mount: '418' }, { manifestPut: 'maybe' }, { immutableTags: false }])(
    'refuses %j',
    (behaviour) => {
      expect(() => readBehaviour(behaviour)).toThrow(/not known/);
    },
  );

  it('joins words of one group', () => {
    expect(
      readBehaviour({ mount: '201', mountByDigest: { x: '202' }, omitHeaders: ['A'], immutableTags: true }),
    ).toEqual({
      mount: { mode: 'exists', byDigest: { x: 'ignore' } },
      answer: { omitHeaders: ['A'] },
      manifest: { immutable: '400evenSame' },
    });
  });
});
