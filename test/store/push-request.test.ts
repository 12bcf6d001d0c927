import { describe, expect, it } from 'vitest';
import { digestOf } from '../../src/model/digest.ts';
import { parseReference } from '../../src/model/reference.ts';
import { pushRequest } from '../../src/store/push-request.ts';
import { requestOf } from '../helpers/publishing.ts';
import { imageEntry, indexEntry, linux, storedDraft } from './drafts.ts';

const LIST = 'docker.io/acme/app:1';
const A = 'docker.io/acme/a:1';
const B = 'docker.io/acme/b:1';
const conflict = expect.objectContaining({ code: 'INDEX_TYPE_CONFLICT', exitCode: 2 });

describe('pushing a draft', () => {
  it("is publishing its images as they were read, in docker's layout", () => {
    const { draft } = storedDraft(LIST, imageEntry(A, linux('arm'), { changes: { platform: { variant: 'v7' } } }));
    const root = draft.entries[0]?.root;
    expect(pushRequest(draft)).toEqual({
      ...requestOf(LIST, []),
      sources: [
        {
          reference: { host: 'docker.io', repository: 'acme/a', tag: '1', digest: root?.digest },
          known: { root, children: [{ ...root, platform: linux('arm', 'v7') }] },
        },
      ],
      layout: 'docker',
    });
  });

  it('takes what push is told', () => {
    const { draft } = storedDraft(LIST, imageEntry(A, linux('arm')));
    const tag = parseReference('acme/app:latest');
    const expectDigest = digestOf(Buffer.from('old'));
    const told = { dryRun: true, verify: false, noClobber: true, expectDigest } as const;
    const options = { type: 'oci', annotations: { a: '1' }, tags: [tag], ...told } as const;
    expect(pushRequest(draft, options)).toMatchObject({
      targets: [parseReference(LIST), tag],
      type: 'oci',
      annotations: { a: '1' },
      ...told,
    });
  });

  it('lists the entries in the order of docker: that of its file names, whatever order they came in', () => {
    const digest = imageEntry(A, linux('arm')).entry.root.digest;
    const references = [
      'docker.io/acme/z:1',
      `docker.io/acme/a@${digest}`,
      A,
      'docker.io/acme/a-b:1',
      'docker.io/acme/a/b:1',
      'docker.io/acme/a:B',
    ];
    const entries = references.map((reference) => imageEntry(reference, linux('arm'), { seed: A }));
    const { sources } = pushRequest(storedDraft(LIST, ...entries).draft);
    const shown = sources.map(
      ({ reference: { repository, tag } }) => `${repository}${tag === undefined ? '@' : `:${tag}`}`,
    );
    expect(shown).toEqual(['acme/a:1', 'acme/a:B', 'acme/a-b:1', 'acme/a@', 'acme/a/b:1', 'acme/z:1']);
  });

  it('keeps attestations beside their image, with their annotations', () => {
    const made = indexEntry(A, [linux('arm'), linux('amd64')]);
    const { sources } = pushRequest(storedDraft(LIST, made).draft);
    expect(sources[0]?.known?.children).toEqual(made.entry.children.map(({ descriptor }) => descriptor));
  });

  it("needs os and architecture of every image, in docker's words", () => {
    const { draft } = storedDraft(
      LIST,
      imageEntry(A, linux('arm')),
      imageEntry(B, undefined, { changes: { platform: { os: 'linux' } } }),
    );
    expect(() => pushRequest(draft)).toThrow(
      expect.objectContaining({
        code: 'PLATFORM_INVALID',
        exitCode: 2,
        message: `manifest ${B} must have an OS and Architecture to be pushed to a registry`,
      }),
    );
  });

  it('needs entries', () => {
    expect(() => pushRequest({ reference: LIST, entries: [] })).toThrow(
      expect.objectContaining({ code: 'DRAFT_NOT_FOUND', exitCode: 4 }),
    );
  });

  it('refuses annotations that a Docker list would lose', () => {
    const docker = imageEntry(A, linux('arm'), { docker: true });
    const noted = imageEntry(B, linux('amd64'), { docker: true, changes: { annotations: { a: '1' } } });
    const annotations = { a: '1' };
    expect(() => pushRequest(storedDraft(LIST, docker).draft, { annotations })).toThrow(conflict);
    expect(() => pushRequest(storedDraft(LIST, docker, noted).draft)).toThrow(conflict);
    expect(() => pushRequest(storedDraft(LIST, docker, noted).draft)).toThrow(B);
    expect(() => pushRequest(storedDraft(LIST, docker, noted).draft, { type: 'docker' })).toThrow(conflict);

    expect(pushRequest(storedDraft(LIST, docker, noted).draft, { type: 'oci', annotations }).annotations).toEqual(
      annotations,
    );
    const mixed = storedDraft(LIST, docker, imageEntry(B, linux('amd64'), { changes: { annotations } })).draft;
    expect(pushRequest(mixed, { annotations }).sources).toHaveLength(2);
    expect(pushRequest(storedDraft(LIST, docker).draft).sources).toHaveLength(1);
  });
});
