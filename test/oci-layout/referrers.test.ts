import { rm, writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { MEDIA_TYPES } from '../../src/model/descriptor.ts';
import { fallbackTag } from '../../src/model/referrers.ts';
import { makeImage, makeIndex } from '../helpers/images.ts';
import { withDirectory } from '../helpers/registry.ts';
import { blobFile, CALM, layLayout, openLayout } from './fixture.ts';

const IMAGE = makeImage('image');
const SIGNATURE = makeImage('signature', { subject: IMAGE.descriptor, annotations: { by: 'us' } });
const SBOM = makeImage('sbom', { subject: IMAGE.descriptor });
const OTHER = makeImage('other', { subject: makeImage('else').descriptor });
const TAG = fallbackTag(IMAGE.descriptor.digest);

const listed = async (folder: string) => openLayout(folder).listReferrers('', IMAGE.descriptor.digest, CALM);

describe('referrers in a layout', () => {
  it('are those of the fallback tag and those among its manifests, each once', () =>
    withDirectory(async (folder) => {
      const list = makeIndex([{ manifest: SIGNATURE }], { annotations: { kept: 'yes' } });
      await layLayout(folder, [
        { manifest: IMAGE, tag: '1' },
        { manifest: list, tag: TAG },
        { manifest: SIGNATURE },
        { manifest: SBOM },
        { manifest: OTHER },
      ]);
      expect(await listed(folder)).toEqual({
        kind: 'listed',
        via: 'tag',
        tag: TAG,
        annotations: { kept: 'yes' },
        referrers: [SIGNATURE.descriptor, { ...SBOM.descriptor, artifactType: MEDIA_TYPES.ociConfig }],
      });
    }));

  it('are none where nothing is there, or nothing can be read', () =>
    withDirectory(async (folder) => {
      const none = { kind: 'listed', via: 'tag', tag: TAG, referrers: [] };
      expect(await listed(folder)).toEqual(none);
      await layLayout(folder, [{ manifest: IMAGE, tag: '1' }, { manifest: SBOM }, { manifest: SIGNATURE }]);
      await rm(blobFile(folder, SBOM.descriptor.digest));
      await writeFile(blobFile(folder, SIGNATURE.descriptor.digest), 'damaged');
      expect(await listed(folder)).toEqual(none);
    }));

  it('are none where the tag holds no index', () =>
    withDirectory(async (folder) => {
      await layLayout(folder, [{ manifest: OTHER, tag: TAG }]);
      expect((await listed(folder)).kind).toBe('listed');
    }));
});
