import { expect, test } from 'vitest';
import { flatDescriptor, reportDocument } from '../../src/ui/render.ts';
import { digest, REPORT } from './samples.ts';

const DESCRIPTOR = {
  mediaType: 'application/vnd.oci.image.manifest.v1+json',
  digest: digest('image'),
  size: 528,
  platform: { architecture: 'amd64', os: 'linux' },
};

test('a descriptor is shown as a manifest has it: what we do not interpret stands beside the rest', () => {
  const kept = { ...DESCRIPTOR, extra: { 'com.example': [1] }, platformExtra: { features: ['sse4'] } };
  expect(flatDescriptor(kept)).toEqual({
    ...DESCRIPTOR,
    platform: { architecture: 'amd64', os: 'linux', features: ['sse4'] },
    'com.example': [1],
  });
  expect(flatDescriptor(DESCRIPTOR)).toEqual(DESCRIPTOR);
});

test('a report shows the entries of its index as they stand there', () => {
  const [list] = REPORT.lists;
  if (list?.index === undefined) throw new Error('the sample has no index');
  const index = { ...list.index, manifests: [{ ...DESCRIPTOR, extra: { data: 'e30=' } }] };
  const shown = reportDocument({ ...REPORT, lists: [{ ...list, index }] });
  expect(shown).toEqual({
    ...REPORT,
    lists: [{ ...list, index: { ...index, manifests: [{ ...DESCRIPTOR, data: 'e30=' }] } }],
  });
  expect(Object.keys(shown)).toEqual(Object.keys(REPORT));
});
