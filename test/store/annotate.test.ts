import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Platform } from '../../src/model/descriptor.ts';
import type { PartialPlatform } from '../../src/model/platform.ts';
import { annotateDraft, type EntryName, removeEntry } from '../../src/store/annotate.ts';
import { descriptorOf, platformFields } from '../../src/store/children.ts';
import type { Draft } from '../../src/store/draft.ts';
import { imageEntry, indexEntry, linux, storedDraft } from './drafts.ts';

const LIST = 'docker.io/acme/app:1';
const A = 'docker.io/acme/a:1';
const B = 'docker.io/acme/b:1';
const named = (source: string): EntryName => ({ source, shown: { list: 'acme/app:1', source: 'acme/a:1' } });

const draftOf = (platform: Platform | undefined): Draft =>
  storedDraft(LIST, imageEntry(A, platform), imageEntry(B, linux('s390x'))).draft;

const annotate = (draft: Draft, platform: PartialPlatform, annotations: Readonly<Record<string, string>> = {}) =>
  annotateDraft(draft, named(A), { platform, annotations });

const platformOfA = (draft: Draft): PartialPlatform => {
  const child = draft.entries[0]?.children[0];
  if (child === undefined) throw new Error('no child');
  return platformFields(child);
};

describe('annotate', () => {
  it.each<[string, Platform | undefined, PartialPlatform, PartialPlatform]>([
    ['sets a variant', linux('arm'), { variant: 'v7' }, linux('arm', 'v7')],
    [
      'replaces what the image says',
      linux('amd64'),
      { architecture: 's390x', os: 'zos' },
      { os: 'zos', architecture: 's390x' },
    ],
    ['names an image that says nothing', undefined, { os: 'linux', architecture: 'amd64' }, linux('amd64')],
    [
      'sets an os.version',
      { os: 'windows', architecture: 'amd64', 'os.version': '1' },
      { 'os.version': '10.0.17763.9' },
      { os: 'windows', architecture: 'amd64', 'os.version': '10.0.17763.9' },
    ],
    [
      'cannot clear a value, as with docker',
      linux('arm', 'v7'),
      { variant: '', os: '', 'os.features': [''] },
      linux('arm', 'v7'),
    ],
    [
      'adds os.features, each once',
      { os: 'windows', architecture: 'amd64', 'os.features': ['win32k'] },
      { 'os.features': ['gpu', 'win32k', 'gpu'] },
      { os: 'windows', architecture: 'amd64', 'os.features': ['win32k', 'gpu'] },
    ],
    ['takes armv7 for v7', linux('arm'), { architecture: 'arm', variant: 'armv7' }, linux('arm', 'v7')],
    ['takes armv8 of arm64 for v8', linux('arm64'), { architecture: 'arm64', variant: 'armv8' }, linux('arm64', 'v8')],
    [
      'takes capitals for what they mean',
      linux('arm'),
      { os: 'Linux', architecture: 'ARM64', variant: 'V8' },
      linux('arm64', 'v8'),
    ],
    ['knows names of Debian, with their variant', linux('arm', 'v6'), { architecture: 'armhf' }, linux('arm', 'v7')],
    ['knows names of the kernel', linux('arm64', 'v8'), { architecture: 'aarch64' }, linux('arm64', 'v8')],
    [
      'keeps a variant that goes with the new architecture',
      linux('arm64', 'v8'),
      { architecture: 'arm' },
      linux('arm', 'v8'),
    ],
    ['takes pairs that docker refuses', linux('amd64'), { architecture: 'loong64' }, linux('loong64')],
  ])('%s', (_rule, before, said, after) => {
    const { draft } = annotate(draftOf(before), said);
    expect(platformOfA(draft)).toEqual(after);
    expect(draft.entries[1]).toEqual(draftOf(before).entries[1]);
    // What the registry said is kept beside it.
    expect(draft.entries[0]?.children[0]?.descriptor).toEqual(draftOf(before).entries[0]?.children[0]?.descriptor);
  });

  it.each<[string, Platform | undefined, PartialPlatform, string, string]>([
    ['arm64/v7', linux('arm64', 'v8'), { variant: 'v7' }, 'arm64 has no variant "v7"', 'linux/arm/v7'],
    [
      'arm64/v7, said at once',
      undefined,
      { os: 'linux', architecture: 'arm64', variant: 'v7' },
      'arm64 has no variant "v7"',
      'linux/arm/v7',
    ],
    [
      'an architecture that the own variant does not go with',
      linux('arm', 'v7'),
      { architecture: 'arm64' },
      'arm64 has no variant "v7"',
      '--variant',
    ],
    [
      'armhf of another variant',
      linux('arm'),
      { architecture: 'armhf', variant: 'v6' },
      'armhf is arm/v7',
      'linux/arm/v6',
    ],
    [
      'half a platform',
      undefined,
      { architecture: 'arm' },
      'manifest entry for image has unsupported os/arch combination: /arm',
      '--os linux',
    ],
    ['no word', linux('amd64'), { architecture: 'a b' }, 'is not a platform', 'Write'],
    ['controls', linux('amd64'), { 'os.features': ['\u001b[2J'] }, 'cannot be shown', 'printable'],
  ])('refuses %s', (_what, before, said, words, hint) => {
    const attempt = () => annotate(draftOf(before), said);
    expect(attempt).toThrow(expect.objectContaining({ code: 'PLATFORM_INVALID', exitCode: 2 }));
    expect(attempt).toThrow(words);
    expect(attempt).toThrow(expect.objectContaining({ hint: expect.stringContaining(hint) }));
  });

  it('tells what it wrote otherwise, and what nobody knows', () => {
    expect(annotate(draftOf(linux('arm')), { variant: 'armv7' }).warnings).toEqual([
      'variant "armv7" is written as v7',
    ]);
    expect(annotate(draftOf(linux('arm')), { architecture: 'armel' }).warnings).toEqual([
      'architecture "armel" is written as arm',
      '"armel" means the variant v5',
    ]);
    expect(annotate(draftOf(linux('arm')), { os: 'beos' }).warnings).toEqual(['no system is known to be "beos/arm"']);
    expect(annotate(draftOf(linux('arm')), { architecture: 'loong64' }).warnings).toEqual([]);
    expect(annotate(draftOf(linux('arm')), { variant: 'v7' }).warnings).toEqual([]);
  });

  it('sets annotations beside earlier ones, and the last word counts', () => {
    const first = annotate(draftOf(linux('amd64')), {}, { a: '1', b: '1' }).draft;
    const second = annotate(first, { variant: 'v2' }, { b: '2', c: '' }).draft;
    const third = annotate(second, { variant: 'v3', 'os.features': ['x'] }).draft;
    const fourth = annotate(third, { 'os.features': ['y'] }).draft;
    const child = fourth.entries[0]?.children[0];
    expect(child?.changes).toEqual({
      platform: { variant: 'v3', 'os.features': ['x', 'y'] },
      annotations: { a: '1', b: '2', c: '' },
    });
    expect(child && descriptorOf(child)).toMatchObject({
      annotations: { a: '1', b: '2', c: '' },
      platform: { ...linux('amd64', 'v3'), 'os.features': ['x', 'y'] },
    });
  });

  it('that says nothing changes nothing', () => {
    for (const platform of [undefined, linux('amd64')]) {
      expect(annotate(draftOf(platform), {})).toEqual({ draft: draftOf(platform), warnings: [] });
    }
  });

  it('said twice is said once', () => {
    const words = fc.constantFrom('arm', 'armhf', 'arm64', 'amd64', 'armv7', 'v7', 'v8', 'armv8', '');
    fc.assert(
      fc.property(words, words, fc.array(fc.constantFrom('x', 'y')), (architecture, variant, features) => {
        const said = { os: 'linux', architecture, variant, 'os.features': features };
        try {
          const once = annotate(draftOf(linux('arm')), said).draft;
          expect(annotate(once, said).draft).toEqual(once);
        } catch (error) {
          expect(error).toMatchObject({ code: 'PLATFORM_INVALID' });
        }
      }),
    );
  });

  it('of an index speaks of its only image, not of the attestation', () => {
    const { draft } = storedDraft(LIST, indexEntry(A, [linux('arm')]));
    const children = annotate(draft, { variant: 'v7' }).draft.entries[0]?.children ?? [];
    expect(children.map((child) => platformFields(child))).toEqual([
      linux('arm', 'v7'),
      { architecture: 'unknown', os: 'unknown' },
    ]);
  });

  it('of an index of several images, or of none, is refused', () => {
    const { draft } = storedDraft(LIST, indexEntry(A, [linux('arm'), linux('amd64')]));
    expect(() => annotate(draft, { variant: 'v7' })).toThrow(
      expect.objectContaining({
        code: 'USAGE_INVALID',
        message: 'acme/a:1 is an index of 2 images, annotate speaks of one',
      }),
    );
    const empty = storedDraft(LIST, indexEntry(A, [])).draft;
    expect(() => annotate(empty, { variant: 'v7' })).toThrow('is an index of no image');
  });

  it("of what the list does not hold is refused in docker's words", () => {
    expect(() =>
      annotateDraft(draftOf(linux('arm')), named('docker.io/acme/c:1'), { platform: {}, annotations: {} }),
    ).toThrow(
      expect.objectContaining({
        code: 'DRAFT_NOT_FOUND',
        exitCode: 4,
        message: 'manifest for image acme/a:1 does not exist in acme/app:1',
        hint: 'See what the draft holds: manifest-publish inspect acme/app:1',
      }),
    );
  });

  it('tells when docker has put another entry in its place', () => {
    const { draft } = storedDraft(LIST, imageEntry('docker.io/acme/q:x-1', linux('arm')));
    expect(() => annotateDraft(draft, named('docker.io/acme/q-x:1'), { platform: {}, annotations: {} })).toThrow(
      expect.objectContaining({ code: 'DRAFT_NOT_FOUND', hint: expect.stringContaining('docker.io/acme/q:x-1') }),
    );
  });
});

describe('removing an entry', () => {
  it('leaves the others', () => {
    expect(removeEntry(draftOf(linux('arm')), named(A)).entries.map(({ reference }) => reference)).toEqual([B]);
    expect(() => removeEntry(draftOf(linux('arm')), named('docker.io/acme/c:1'))).toThrow('does not exist in');
  });
});
