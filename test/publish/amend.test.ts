import { describe, expect, it } from 'vitest';
import { PublishError } from '../../src/errors.ts';
import { type Descriptor, MEDIA_TYPES } from '../../src/model/descriptor.ts';
import { buildIndex } from '../../src/model/image-index.ts';
import { parsePlatform } from '../../src/model/platform.ts';
import { type Composition, compose, namesPlatforms, verbatimIndex } from '../../src/publish/compose.ts';
import type { PublishRequest } from '../../src/publish/request.ts';
import type { GoneEntry, ResolvedChild, ResolvedSource } from '../../src/publish/resolved.ts';
import { checkFirst, checkTags, guardFor, guardOf } from '../../src/publish/tag-guard.ts';
import { attestation, child, digest, image, indexSource, request, resolution, source, withPlatform } from './values.ts';

const on = (platform: string, name: string, repository = 't/new', mediaType: string = MEDIA_TYPES.ociManifest) =>
  withPlatform(child(repository, image(name, [], { mediaType })), parsePlatform(platform));
const here = (platform: string, name: string, mediaType?: string) => on(platform, name, 't/all', mediaType);
const names = new Map(
  ['a', 'b', 'c', 'a2', 'b2', 'zstd', 'att-a', 'att-b', 'att-a2', 'att-a3', 'new'].map((name) => [digest(name), name]),
);
const listedBy = ({ index }: Composition) => index.manifests.map((entry) => names.get(entry.digest));

function amend(
  present: ResolvedSource,
  sources: readonly ResolvedSource[],
  more: Partial<PublishRequest> = {},
  bytes: ReadonlyMap<Descriptor['digest'], Uint8Array> = new Map(),
): Composition {
  return compose(request({ amend: true, ...more }), { ...resolution(sources), present }, new Map(), bytes);
}

/** What TARGET holds, with bytes as somebody else would write them. */
function held(children: readonly ResolvedChild[], annotations: Readonly<Record<string, string>> = {}) {
  const one = indexSource('t/all', children);
  const manifests = children.map(({ descriptor }) => descriptor);
  const written = buildIndex({ mediaType: MEDIA_TYPES.ociIndex, manifests, annotations });
  const root = { ...one.root, kind: 'index' as const, manifests, annotations, mediaType: MEDIA_TYPES.ociIndex };
  const bytes = Buffer.from(JSON.stringify(JSON.parse(Buffer.from(written.bytes).toString())));
  return { present: { ...one, root }, bytes: new Map([[root.digest, bytes]]) };
}

describe('amending what a tag holds', () => {
  const a = here('linux/amd64', 'a');
  const b = here('linux/arm64', 'b');
  const ofA = attestation('t/all', 'att-a', a);
  const ofB = attestation('t/all', 'att-b', b);

  it('replaces an image in its place, appends what is new, and leaves the rest as it is', () => {
    const { present } = held([a, b]);
    const done = amend(present, [source(on('linux/s390x', 'c')), source(on('linux/amd64', 'a2'))]);
    expect(listedBy(done)).toEqual(['a2', 'b', 'c']);
  });

  it('finds what is replaced by the equalities: arm64/v8 takes the place of arm64', () => {
    const done = amend(held([a, b]).present, [source(on('linux/arm64/v8', 'b2'))]);
    expect(listedBy(done)).toEqual(['a', 'b2']);
    expect(done.index.manifests[1]?.platform?.variant).toBe('v8');
  });

  it('tells Windows images apart by os.version', () => {
    const windows = (version: string, name: string, where = 't/new') =>
      withPlatform(child(where, image(name, [])), { os: 'windows', architecture: 'amd64', 'os.version': version });
    const { present } = held([windows('10.0.1', 'a', 't/all'), windows('10.0.2', 'b', 't/all')]);
    expect(listedBy(amend(present, [source(windows('10.0.2', 'b2')), source(windows('10.0.3', 'c'))]))).toEqual([
      'a',
      'b2',
      'c',
    ]);
  });

  it('drops the attestations of an image that is replaced, wherever they stand', () => {
    const { present } = held([a, b, ofA, ofB]);
    expect(listedBy(amend(present, [source(on('linux/amd64', 'a2'))]))).toEqual(['a2', 'b', 'att-b']);
  });

  it('puts new attestations where the old ones stood, further ones behind these, and otherwise behind their image', () => {
    const a2 = on('linux/amd64', 'a2');
    const brought = indexSource('t/new', [a2, attestation('t/new', 'att-a2', a2), attestation('t/new', 'att-a3', a2)]);
    expect(listedBy(amend(held([a, b, ofA, ofB]).present, [brought]))).toEqual([
      'a2',
      'b',
      'att-a2',
      'att-a3',
      'att-b',
    ]);
    expect(listedBy(amend(held([a, b, ofB]).present, [brought]))).toEqual(['a2', 'att-a2', 'att-a3', 'b', 'att-b']);
    expect(listedBy(amend(held([b, ofB]).present, [brought]))).toEqual(['b', 'att-b', 'a2', 'att-a2', 'att-a3']);
  });

  it('keeps the attestations of an image that is brought again, unless it brings its own', () => {
    const { present } = held([a, ofA, b]);
    expect(listedBy(amend(present, [source(on('linux/amd64', 'a'))]))).toEqual(['a', 'att-a', 'b']);
    const again = on('linux/amd64', 'a');
    const brought = indexSource('t/new', [again, attestation('t/new', 'att-a2', again)]);
    expect(listedBy(amend(present, [brought]))).toEqual(['a', 'att-a2', 'b']);
  });

  it('takes the manifest that is there already from there', () => {
    const done = amend(held([a, b]).present, [source(on('linux/amd64', 'a'))]);
    expect(done.listed.map((one) => one.child.from.repository)).toEqual(['t/all', 't/all']);
  });

  it('replaces every copy of a platform, and keeps copies apart that are brought together', () => {
    const zstd = here('linux/amd64', 'zstd');
    const marked = { ...zstd, descriptor: { ...zstd.descriptor, annotations: { compression: 'zstd' } } };
    const { present } = held([a, b, marked]);
    expect(listedBy(amend(present, [source(on('linux/amd64', 'a2'))]))).toEqual(['a2', 'b']);
    const two = [
      source(on('linux/amd64', 'a2')),
      source(on('linux/amd64', 'new'), { annotations: { compression: 'zstd' } }),
    ];
    expect(listedBy(amend(present, two))).toEqual(['a2', 'new', 'b']);
    expect(() => amend(present, [source(on('linux/amd64', 'a2')), source(on('linux/amd64', 'new'))])).toThrow(
      /are both for linux\/amd64/,
    );
  });

  it('keeps index annotations under those of the request', () => {
    const { present } = held([a], { kept: '1', both: 'old' });
    const { index } = amend(present, [source(on('linux/s390x', 'c'))], { annotations: { both: 'new' } });
    expect(JSON.parse(Buffer.from(index.bytes).toString()).annotations).toEqual({ both: 'new', kept: '1' });
  });

  it('keeps an OCI index one though all children are Docker, and a Docker list while they are', () => {
    const docker = MEDIA_TYPES.dockerManifest;
    const { present } = held([here('linux/amd64', 'a', docker)]);
    const brought = [source(on('linux/arm64', 'b', 't/new', docker))];
    expect(amend(present, brought).index.mediaType).toBe(MEDIA_TYPES.ociIndex);
    const list = { ...present, root: { ...present.root, mediaType: MEDIA_TYPES.dockerList } };
    expect(amend(list, brought).index.mediaType).toBe(MEDIA_TYPES.dockerList);
    expect(amend(list, [source(on('linux/arm64', 'b'))]).index.mediaType).toBe(MEDIA_TYPES.ociIndex);
    expect(amend(present, brought, { type: 'docker' }).index.mediaType).toBe(MEDIA_TYPES.dockerList);
  });

  it('filters and expects: the filter is for what is brought, the exact set for what comes out', () => {
    const { present } = held([a]);
    const brought = [indexSource('t/new', [on('linux/arm64', 'b'), on('linux/s390x', 'c')])];
    const platforms = [parsePlatform('linux/s390x')];
    const expectPlatforms = [parsePlatform('linux/amd64'), parsePlatform('linux/s390x')];
    expect(listedBy(amend(present, brought, { platforms, expectPlatforms }))).toEqual(['a', 'c']);
    expect(() => amend(present, brought, { platforms, expectPlatforms: platforms })).toThrow(
      /not expected linux\/amd64/,
    );
  });

  it('annotates entries of either', () => {
    const entryAnnotations = [
      { annotations: { all: '1' } },
      { platform: parsePlatform('linux/amd64'), annotations: { own: '1' } },
    ];
    const { index } = amend(held([a, ofA]).present, [source(on('linux/arm64', 'b'))], { entryAnnotations });
    expect(index.manifests.map((entry) => entry.annotations?.['all'] ?? entry.annotations?.['own'])).toEqual([
      '1',
      undefined,
      '1',
    ]);
    expect(index.manifests[0]?.annotations).toEqual({ all: '1', own: '1' });
  });

  it('gives the very bytes that are there when nothing changes, whoever wrote them', () => {
    const { present, bytes } = held([a, b, ofA, ofB], { note: 'x' });
    const own = bytes.get(present.root.digest);
    const again = indexSource('t/new', [on('linux/amd64', 'a'), on('linux/arm64', 'b')]);
    const same = amend(present, [again], {}, bytes);
    expect(same.index).toMatchObject({ digest: present.root.digest, bytes: own });
    expect(amend(present, [again], { annotations: { note: 'y' } }, bytes).index.digest).not.toBe(present.root.digest);
    expect(amend(present, [again], { attestations: 'keep', type: 'oci' }, bytes).index.bytes).toBe(own);
  });

  it('publishes no source as it is, and reads configs before any write', () => {
    const { present } = held([a]);
    expect(verbatimIndex(request({ amend: true }), { sources: [indexSource('t/new', [b])], present })).toBeUndefined();
    expect(namesPlatforms(request({ amend: true }))).toBe(true);
  });

  it('makes an entry of a plain image, with the platform of its config', () => {
    const plain = child('t/all', image('a', []));
    const configs = new Map([[plain.manifest.config.digest, { os: 'linux', architecture: 'amd64' }]]);
    const run = (brought: ResolvedChild) =>
      compose(
        request({ amend: true }),
        { ...resolution([source(brought)]), present: source(plain) },
        configs,
        new Map(),
      );
    const { index } = run(on('linux/arm64', 'b'));
    expect(index.manifests.map((entry) => entry.platform?.architecture)).toEqual(['amd64', 'arm64']);
    expect(listedBy(run(on('linux/amd64', 'a2')))).toEqual(['a2']);
  });
});

describe('an entry of the present index whose manifest is gone', () => {
  const a = here('linux/amd64', 'a');
  const b = here('linux/arm64', 'b');
  const error = new PublishError('MANIFEST_NOT_FOUND', 'it is not there', 'hint');
  const gone = (one: ResolvedChild, at: number): GoneEntry => ({ entry: one.descriptor, at, error });
  const without = (entries: readonly GoneEntry[], children: readonly ResolvedChild[]): ResolvedSource => ({
    ...indexSource('t/all', children),
    gone: entries,
  });

  it('is no matter when its platform is replaced, in its place', () => {
    const present = without([gone(a, 0), gone(attestation('t/all', 'att-a', a), 1)], [b]);
    expect(listedBy(amend(present, [source(on('linux/amd64', 'a2'))]))).toEqual(['a2', 'b']);
  });

  it('ends the run when it would stay, and says how to leave it out', () => {
    const present = without([gone(a, 0)], [b]);
    const run = () => amend(present, [source(on('linux/s390x', 'c'))]);
    expect(run).toThrow(/^it is not there \(linux\/amd64\)$/);
    expect(run).toThrow(expect.objectContaining({ exitCode: 4, hint: expect.stringContaining('--ignore-missing') }));
  });

  it('is left out with --ignore-missing and a warning, with its attestation', () => {
    const present = without([gone(a, 0)], [b, attestation('t/all', 'att-a', a)]);
    const done = amend(present, [source(on('linux/s390x', 'c'))], { ignoreMissing: true });
    expect(listedBy(done)).toEqual(['b', 'c']);
    expect(done.warnings).toEqual(['it is not there (linux/amd64); left out of the index']);
  });
});

describe('the guard of a tag that is amended', () => {
  const target = resolution([], { kind: 'present', digest: digest('old'), isImage: false, children: [] }).tags[0];
  const absent = resolution([]).tags[0];
  if (target === undefined || absent === undefined) throw new Error('no tag');
  const other = { ...target, reference: { ...target.reference, tag: 'other' } };

  it('holds what was read, for TARGET alone', () => {
    const guard = guardOf(request({ amend: true }), target);
    expect(guard).toEqual({ amended: { target: 'reg.test/t/all:1', held: digest('old') } });
    expect(guardFor(guard, other.reference)).toBeUndefined();
    if (guard === undefined) throw new Error('no guard');
    expect(checkFirst(guard, [target, { ...other, kind: 'absent' }])).toBe('free');
    expect(() =>
      checkTags(guard, [{ ...target, kind: 'present', digest: digest('x') } as typeof target], digest('new')),
    ).toThrow(/held .* when it was read to be amended, and holds/);
  });

  it('of a tag that was not there: it must still not be there', () => {
    const guard = guardOf(request({ amend: true }), absent);
    if (guard === undefined) throw new Error('no guard');
    expect(() => checkTags(guard, [target], digest('new'))).toThrow(/was not there when it was read to be amended/);
    expect(() => checkTags(guard, [target], digest('old'))).not.toThrow();
  });
});
