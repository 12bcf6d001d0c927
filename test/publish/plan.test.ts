import { describe, expect, it } from 'vitest';
import { planPublish } from '../../src/publish/plan.ts';
import { attestation, blob, child, digest, image, request, resolution, source } from './values.ts';

const shared = blob('shared-layer');
const amd64 = child('t/amd64', image('amd64', [shared, blob('amd64-layer')]));
const arm64 = child('t/arm64', image('arm64', [shared, blob('arm64-layer')]));
const both = [amd64, arm64];
const empty = resolution([source(amd64), source(arm64)]);

describe('planPublish', () => {
  it('places a blob once however many children share it, and offers every repository that has it', () => {
    const plan = planPublish(request(), empty, both);
    const one = plan.blobs.filter((planned) => planned.digest === shared.digest);
    expect(one).toHaveLength(1);
    expect(one[0]?.mountFrom).toEqual(['t/amd64', 't/arm64']);
    expect(plan.blobs).toHaveLength(5);
  });

  it('asks nothing of a child whose source is the target repository, nor of its blobs elsewhere', () => {
    const here = child('t/all', image('amd64', [shared]));
    const plan = planPublish(request(), empty, [here, arm64]);
    expect(plan.children.map((one) => one.standing)).toEqual(['here', 'away']);
    expect(plan.blobs.find((one) => one.digest === shared.digest)?.present).toBe(true);
    expect(plan.blobs.find((one) => one.digest === digest('arm64-layer'))?.present).toBe(false);
  });

  it('lets blobs wait for the HEAD of listed children, but not those that a new child needs anyway', () => {
    const tag = { kind: 'present' as const, digest: digest('old'), children: [amd64.manifest.digest] };
    const plan = planPublish(request(), resolution([], tag), both);
    expect(plan.children.map((one) => one.standing)).toEqual(['listed', 'away']);
    expect(plan.blobs.find((one) => one.digest === digest('amd64-layer'))?.waitsFor).toEqual([amd64.manifest.digest]);
    expect(plan.blobs.find((one) => one.digest === shared.digest)?.waitsFor).toEqual([]);
  });

  it('trusts listed children when the user wants no HEADs', () => {
    const tag = { kind: 'present' as const, digest: digest('old'), children: [amd64.manifest.digest] };
    const plan = planPublish(request({ verify: false }), resolution([], tag), [amd64]);
    expect(plan.children[0]?.standing).toBe('trusted');
    expect(plan.blobs.every((one) => one.present)).toBe(true);
  });

  it('never offers a repository of another registry in a mount', () => {
    const elsewhere = { ...arm64, from: { host: 'other.test', repository: 't/arm64' } };
    const plan = planPublish(request(), empty, [amd64, elsewhere]);
    expect(plan.blobs.find((one) => one.digest === digest('arm64-layer'))?.mountFrom).toEqual([]);
    expect(plan.blobs.find((one) => one.digest === shared.digest)?.mountFrom).toEqual(['t/amd64']);
    expect(plan.blobs.find((one) => one.digest === shared.digest)?.sources).toHaveLength(2);
  });

  it('leaves foreign layers out unless they are asked for', () => {
    const foreign = blob('windows-base', 9, { urls: ['https://example.test/base'] });
    const windows = child('t/win', image('win', [foreign, blob('win-layer')]));
    const plan = planPublish(request(), empty, [windows]);
    expect(plan.blobs.map((one) => one.digest)).not.toContain(foreign.digest);
    expect(plan.children[0]?.skipped).toEqual([{ digest: foreign.digest, size: 9 }]);
    const asked = planPublish(request({ foreignLayers: true }), empty, [windows]);
    expect(asked.blobs.map((one) => one.digest)).toContain(foreign.digest);
  });

  it('never leaves out a config, whatever urls it has, nor what is a layer of its own as well', () => {
    const config = { ...amd64.manifest.config, urls: ['https://example.test/config'] };
    const twice = blob('base', 9);
    const layers = [{ ...twice, urls: ['https://example.test/base'] }, twice];
    const plan = planPublish(request(), empty, [child('t/amd64', image('amd64', layers, { config }))]);
    expect(plan.children[0]?.blobs).toEqual([config.digest, twice.digest]);
    expect(plan.children[0]?.skipped).toEqual([]);
  });

  it('reads a blob from the registry of the target first, wherever else it is', () => {
    const elsewhere = { ...amd64, from: { host: 'other.test', repository: 't/amd64' } };
    const plan = planPublish(request(), empty, [elsewhere, arm64]);
    const hosts = plan.blobs.find((one) => one.digest === shared.digest)?.sources.map(({ host }) => host);
    expect(hosts).toEqual(['reg.test', 'other.test']);
  });

  it('puts an image before its attestation', () => {
    const attested = attestation('t/amd64', 'att', amd64);
    const plan = planPublish(request(), empty, [attested, amd64]);
    expect(plan.children.find((one) => one.digest === attested.manifest.digest)?.after).toEqual([
      amd64.manifest.digest,
    ]);
  });

  it('breaks a circle of subjects, which only annotations can make', () => {
    const one = { ...amd64, subjects: [arm64.manifest.digest] };
    const two = { ...arm64, subjects: [amd64.manifest.digest] };
    const after = planPublish(request(), empty, [one, two]).children.map((planned) => planned.after.length);
    expect(after.reduce((sum, length) => sum + length, 0)).toBe(1);
  });

  it('refuses one blob with two sizes', () => {
    const other = child('t/other', image('other', [{ ...shared, size: shared.size + 1 }]));
    expect(() => planPublish(request(), empty, [amd64, other])).toThrow(/gives blob .* bytes/);
  });

  it('survives JSON, so that it can be printed and compared', () => {
    const plan = planPublish(request(), empty, both);
    expect(JSON.parse(JSON.stringify(plan))).toEqual(plan);
  });
});
