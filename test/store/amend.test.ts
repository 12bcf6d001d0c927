import { describe, expect, it } from 'vitest';
import { amendDraft } from '../../src/store/amend.ts';
import { annotateDraft } from '../../src/store/annotate.ts';
import { platformFields } from '../../src/store/children.ts';
import type { StoredDraft } from '../../src/store/draft.ts';
import { draftWarnings } from '../../src/store/draft-warnings.ts';
import { imageEntry, indexEntry, linux, type MadeEntry, storedDraft } from './drafts.ts';

const LIST = 'docker.io/acme/app:1';
const A = 'docker.io/acme/a:1';
const B = 'docker.io/acme/b:1';

function amend(current: StoredDraft | undefined, ...read: readonly MadeEntry[]): ReturnType<typeof amendDraft> {
  const bytes = new Map(read.flatMap((one) => [...one.bytes]));
  return amendDraft(
    current,
    LIST,
    read.map(({ entry }) => entry),
    bytes,
  );
}

function annotated(stored: StoredDraft, source: string, variant: string): StoredDraft {
  const name = { source, shown: { list: LIST, source } };
  return {
    ...stored,
    draft: annotateDraft(stored.draft, name, { platform: { variant }, annotations: { a: '1' } }).draft,
  };
}

const changesOf = ({ draft }: StoredDraft): unknown =>
  draft.entries.map(({ children }) => children.map((one) => one.changes));

describe('amending a draft', () => {
  it('without one makes one', () => {
    const { stored, warnings } = amend(undefined, imageEntry(A, linux('amd64')), imageEntry(B, linux('arm')));
    expect(stored).toEqual(storedDraft(LIST, imageEntry(A, linux('amd64')), imageEntry(B, linux('arm'))));
    expect(warnings).toEqual([]);
  });

  it('replaces entries of the same reference in their place, and puts new ones last', () => {
    const before = storedDraft(LIST, imageEntry(A, linux('amd64')), imageEntry(B, linux('arm')));
    const moved = imageEntry(A, linux('amd64'), { seed: 'moved' });
    const { stored, warnings } = amend(before, imageEntry('docker.io/acme/c:1', linux('s390x')), moved);
    expect(stored.draft.entries.map(({ reference }) => reference)).toEqual([A, B, 'docker.io/acme/c:1']);
    expect(stored.draft.entries[0]?.root).toEqual(moved.entry.root);
    expect([...stored.manifests.keys()].sort()).toEqual(stored.draft.entries.map(({ root }) => root.digest).sort());
    expect(warnings).toEqual([]);
  });

  it('takes the last of a reference that is given twice', () => {
    const { stored } = amend(undefined, imageEntry(A, linux('amd64')), imageEntry(A, linux('arm')));
    expect(stored.draft.entries).toEqual([imageEntry(A, linux('arm')).entry]);
  });

  it('keeps what annotate said of an image whose tag has moved', () => {
    const before = annotated(storedDraft(LIST, imageEntry(A, linux('arm'))), A, 'v7');
    const { stored, warnings } = amend(before, imageEntry(A, linux('arm'), { seed: 'moved' }));
    expect(changesOf(stored)).toEqual([[{ platform: { variant: 'v7' }, annotations: { a: '1' } }]]);
    expect(warnings).toEqual([]);
  });

  it('lets what is said now win over what was said', () => {
    const before = annotated(storedDraft(LIST, imageEntry(A, linux('arm'))), A, 'v7');
    const { stored } = amend(before, imageEntry(A, linux('arm'), { changes: { platform: linux('arm', 'v6') } }));
    expect(changesOf(stored)).toEqual([[{ platform: linux('arm', 'v6'), annotations: { a: '1' } }]]);
  });

  it('keeps it for the only image of an index, and not for its attestation', () => {
    const before = annotated(storedDraft(LIST, imageEntry(A, linux('arm'))), A, 'v7');
    const { stored } = amend(before, indexEntry(A, [linux('arm')]));
    expect(changesOf(stored)).toEqual([[{ platform: { variant: 'v7' }, annotations: { a: '1' } }, undefined]]);
  });

  it('of several images, keeps it for the same digest or platform', () => {
    const before = annotated(storedDraft(LIST, imageEntry(A, linux('amd64'))), A, 'v2');
    const same = amend(before, indexEntry(A, [linux('arm'), linux('amd64')]));
    expect(changesOf(same.stored)).toEqual([
      [undefined, undefined, { platform: { variant: 'v2' }, annotations: { a: '1' } }, undefined],
    ]);
    const gone = amend(before, indexEntry(A, [linux('arm'), linux('s390x')]));
    expect(changesOf(gone.stored)).toEqual([[undefined, undefined, undefined, undefined]]);
    expect(gone.warnings).toEqual([`${A} was linux/amd64/v2, it is linux/arm, linux/s390x now`]);
  });

  it("keeps what docker's annotate said of the same image, which docker wrote over what the config says", () => {
    const before = storedDraft(LIST, imageEntry(A, linux('arm')));
    const [entry] = before.draft.entries;
    if (entry === undefined) throw new Error('no entry');
    const children = entry.children.map(({ descriptor }) => ({
      descriptor: { ...descriptor, platform: linux('arm', 'v6') },
    }));
    const docker = { ...before, draft: { ...before.draft, entries: [{ ...entry, children }] } };
    const same = amend(docker, imageEntry(A, linux('arm')));
    expect(same.stored.draft.entries[0]?.children.map(platformFields)).toEqual([linux('arm', 'v6')]);
    expect(same.warnings).toEqual([]);
    const moved = amend(docker, imageEntry(A, linux('arm'), { seed: 'moved' }));
    expect(moved.stored.draft.entries[0]?.children.map(platformFields)).toEqual([linux('arm')]);
    expect(moved.warnings).toEqual([`${A} was linux/arm/v6, it is linux/arm now`]);
  });

  it("keeps that it came from docker's store", () => {
    const before = storedDraft(LIST, imageEntry(A, linux('arm')));
    const docker = imageEntry(A, linux('arm')).entry.root.digest;
    const { stored } = amend({ ...before, draft: { ...before.draft, docker } }, imageEntry(B, linux('amd64')));
    expect(stored.draft.docker).toBe(docker);
  });
});

describe('what push will refuse is told before', () => {
  it('two images for one platform, by both names', () => {
    const { draft } = storedDraft(LIST, imageEntry(A, linux('arm64')), imageEntry(B, linux('arm64', 'v8')));
    expect(draftWarnings(draft)).toEqual([
      `${A} and ${B} are both for linux/arm64/v8: annotate one, or drop it with annotate --remove, before push`,
    ]);
  });

  it('images of indexes by their digest, attestations not', () => {
    const two = indexEntry(B, [linux('arm'), linux('amd64')]);
    const { draft } = storedDraft(LIST, imageEntry(A, linux('amd64')), two);
    const digest = two.entry.children[2]?.descriptor.digest;
    expect(draftWarnings(draft)).toEqual([
      expect.stringContaining(`${A} and ${B} (${digest}) are both for linux/amd64`),
    ]);
  });

  it('not what clients can tell apart', () => {
    const windows = (version: string) => ({ os: 'windows', architecture: 'amd64', 'os.version': version });
    const { draft } = storedDraft(
      LIST,
      imageEntry('docker.io/acme/w:1', windows('10.0.1')),
      imageEntry('docker.io/acme/w:2', windows('10.0.2')),
      imageEntry(A, linux('amd64')),
      imageEntry(B, linux('amd64'), { changes: { annotations: { zstd: 'true' } } }),
    );
    expect(draftWarnings(draft)).toEqual([]);
  });

  it('an image that tells no platform', () => {
    const { draft } = storedDraft(LIST, imageEntry(A, undefined));
    expect(draftWarnings(draft)).toEqual([`${A} tells no os or no architecture: say it with annotate before push`]);
  });
});
