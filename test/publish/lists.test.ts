import { describe, expect, it } from 'vitest';
import { PublishError } from '../../src/errors.ts';
import { parseReference } from '../../src/model/reference.ts';
import type { PublishEvent } from '../../src/publish/events.ts';
import type { PublishReport } from '../../src/publish/report.ts';
import type { PublishRequest } from '../../src/publish/request.ts';
import { type RunningRegistry, seedDebian } from '../../src/registry-server/index.ts';
import { seedImage } from '../helpers/images.ts';
import { counts, type PublishOptions, publishAll, requestOf, sourcesOf } from '../helpers/publishing.ts';
import { requests, withRegistries, withRegistry, writes } from '../helpers/registry.ts';

const amd64 = { os: 'linux', architecture: 'amd64' };
const arm64 = { os: 'linux', architecture: 'arm64' };

/** A list on one registry. */
function listOn(
  registry: RunningRegistry,
  target: string,
  sources: readonly string[],
  options: PublishOptions = {},
): PublishRequest {
  const full = sources.map((source) => `${registry.host}/${source}`);
  return requestOf(`${registry.host}/${target}`, full, options);
}

type Failure = PublishError & { readonly report: PublishReport };

async function failureOf(run: Promise<PublishReport>): Promise<Failure> {
  const error = await run.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof PublishError)) throw new Error(`should have failed: ${String(error)}`);
  return error as Failure;
}

const actionsOf = (report: PublishReport) =>
  report.lists.map(({ targets: [first] }) => (first?.action === 'failed' ? first.error.code : first?.action));

describe('lists that have everything in common', () => {
  it('cost the second one GET and one PUT, whether it comes beside the first or after', () =>
    withRegistry({}, async (registry) => {
      const sources = sourcesOf(seedDebian(registry));
      const lists = ['1', '2', '3'].map((tag) => listOn(registry, `debian/all:${tag}`, sources));
      const report = await publishAll([registry], lists);
      // The counts of one list, and two more tags.
      expect(counts(registry)).toEqual({ manifestGet: 11, blobGet: 8, mount: 40, blobHead: 40, manifestPut: 11 });
      expect(report.totals.blobs).toEqual({ present: 0, mounted: 40, copied: 0, skipped: 0 });
      const [first, ...others] = report.lists;
      for (const other of others) expect(other.images).toEqual(first?.images);
      expect(new Set(report.lists.map(({ index }) => index?.digest)).size).toBe(1);
    }));

  it('and were named by tag and by digest', () =>
    withRegistry({}, async (registry) => {
      const image = seedImage(registry, 't/a', '1', { platform: amd64 });
      const first = listOn(registry, 't/all:1', ['t/a:1']);
      await publishAll([registry], [first, listOn(registry, 't/all:2', [`t/a@${image.descriptor.digest}`])]);
      expect(requests(registry, 'manifestGet').filter(({ repository }) => repository === 't/a').length).toBeLessThan(3);
      expect(requests(registry, 'blobGet')).toHaveLength(1);
      expect(requests(registry, 'manifestPut')).toHaveLength(3);
    }));

  it('are streamed once where mounts are refused', () =>
    withRegistry({ mount: { mode: 'ignore' } }, async (registry) => {
      const sources = sourcesOf(seedDebian(registry));
      const lists = Array.from({ length: 20 }, (_, tag) => listOn(registry, `debian/all:${tag}`, sources));
      const report = await publishAll([registry], lists);
      expect(requests(registry, 'mount')).toHaveLength(40);
      expect(requests(registry, 'uploadPut')).toHaveLength(40);
      expect(requests(registry, 'manifestPut')).toHaveLength(28);
      expect(report.totals.blobs.copied).toBe(40);
      const sizes = report.lists[0]?.images.flatMap(({ placed }) => placed[0]?.blobs ?? []) ?? [];
      expect(report.totals.bytesSent).toBe(sizes.reduce((sum, { size }) => sum + size, 0));
    }));

  it('ask once whether the children are there that their tags list', () =>
    withRegistry({}, async (registry) => {
      const sources = sourcesOf(seedDebian(registry));
      const lists = ['1', '2', '3'].map((tag) => listOn(registry, `debian/all:${tag}`, sources));
      await publishAll([registry], lists);
      registry.clearJournal();
      const again = await publishAll([registry], lists);
      expect(counts(registry)).toEqual({ manifestGet: 11, blobGet: 8, manifestHead: 8 });
      expect(actionsOf(again)).toEqual(['unchanged', 'unchanged', 'unchanged']);
    }));

  it('tell of a blob in one plan only, so that sums over the plans are right', () =>
    withRegistry({}, async (registry) => {
      const sources = sourcesOf(seedDebian(registry));
      const events: PublishEvent[] = [];
      const lists = ['1', '2'].map((tag) => listOn(registry, `debian/all:${tag}`, sources));
      await publishAll([registry], lists, { onEvent: (event) => void events.push(event) });
      const planned = events.flatMap((event) => (event.kind === 'plan' ? [event.blobs] : []));
      expect(planned.toSorted()).toEqual([0, 40]);
      expect(events.filter(({ kind }) => kind === 'blob.done')).toHaveLength(40);
      expect(events.find(({ kind }) => kind === 'run.start')).toEqual({ kind: 'run.start', lists: 2 });
      expect(events.filter(({ kind }) => kind === 'list.done')).toHaveLength(2);
    }));
});

describe('a list that fails', () => {
  it('among five that are to go on is told, and the others are done', () =>
    withRegistry({}, async (registry) => {
      const names = ['a', 'b', 'c', 'd', 'e'];
      for (const name of names) if (name !== 'c') seedImage(registry, `t/${name}`, '1', { platform: amd64 });
      const lists = names.map((name) => listOn(registry, `x/${name}:1`, [`t/${name}:1`]));
      const events: PublishEvent[] = [];
      const onEvent = (event: PublishEvent): void => void events.push(event);
      const error = await failureOf(publishAll([registry], lists, { keepGoing: true, onEvent }));
      expect([error.code, error.exitCode]).toEqual(['LISTS_FAILED', 9]);
      expect(error.message).toContain(`1 of 5 lists failed: ${registry.host}/x/c:1`);
      // All that failed is of one kind: what helps against it is what is said.
      expect(error.hint).toBe((error.cause as PublishError).hint);
      expect(actionsOf(error.report)).toEqual(['created', 'created', 'SOURCE_NOT_FOUND', 'created', 'created']);
      expect(error.moved).toEqual(['a', 'b', 'd', 'e'].map((name) => `${registry.host}/x/${name}:1`));
      const ended = events.flatMap((event) => (event.kind === 'list.done' && event.error ? [event.target] : []));
      expect(ended).toEqual([`${registry.host}/x/c:1`]);
    }));

  it('stops the others, of which those not done were not run; nothing is left open or asked afterwards', () =>
    withRegistry({ mount: { mode: 'ignore' } }, async (registry) => {
      const names = Array.from({ length: 20 }, (_, index) => `l${index}`);
      for (const name of names.slice(1)) seedImage(registry, `t/${name}`, '1', { platform: amd64 });
      registry.addFault({ operation: 'uploadPut', times: 9999, action: { kind: 'stall' } });
      // The missing source is told when the others are in the middle of their uploads.
      registry.addFault({ repository: 't/l0', action: { kind: 'delay', milliseconds: 400 } });
      const lists = names.map((name) => listOn(registry, `x/${name}:1`, [`t/${name}:1`]));
      const error = await failureOf(publishAll([registry], lists));
      expect([error.code, error.exitCode, error.moved]).toEqual(['SOURCE_NOT_FOUND', 4, []]);
      expect(actionsOf(error.report)).toEqual(['SOURCE_NOT_FOUND', ...names.slice(1).map(() => 'NOT_RUN')]);
      expect(requests(registry, 'uploadPut').length).toBeGreaterThan(0);
      // Lists beyond the sixteenth were not begun.
      expect(requests(registry).some(({ repository }) => repository === 't/l19')).toBe(false);
      expect(registry.openSessions()).toBe(0);
      const { length } = registry.journal;
      await new Promise((done) => setTimeout(done, 50));
      expect(registry.journal).toHaveLength(length);
    }));

  it('after others were done leaves them done, and names their tags', () =>
    withRegistry({}, async (registry) => {
      seedImage(registry, 't/a', '1', { platform: amd64 });
      registry.addFault({ repository: 't/b', action: { kind: 'delay', milliseconds: 500 } });
      const lists = [listOn(registry, 'x/b:1', ['t/b:1']), listOn(registry, 'x/a:1', ['t/a:1'])];
      const error = await failureOf(publishAll([registry], lists));
      expect(actionsOf(error.report)).toEqual(['SOURCE_NOT_FOUND', 'created']);
      expect(error.moved).toEqual([`${registry.host}/x/a:1`]);
    }));

  it('for its platforms hands over to those who share its blobs', () =>
    withRegistry({ mount: { mode: 'ignore' } }, async (registry) => {
      seedImage(registry, 't/a', '1', { platform: amd64 });
      seedImage(registry, 't/b', '1', { platform: arm64 });
      seedImage(registry, 't/twice', '1', { platform: amd64 });
      seedImage(registry, 't/slow', '1', { platform: { os: 'linux', architecture: 's390x' } });
      // The bad list begins every blob and is found out while the good one still waits for a config.
      registry.addFault({ operation: 'blobGet', repository: 't/slow', action: { kind: 'delay', milliseconds: 400 } });
      const bad = listOn(registry, 'x/all:bad', ['t/a:1', 't/b:1', 't/twice:1']);
      const good = listOn(registry, 'x/all:good', ['t/a:1', 't/b:1', 't/slow:1']);
      const error = await failureOf(publishAll([registry], [bad, good], { keepGoing: true }));
      expect(actionsOf(error.report)).toEqual(['PLATFORM_DUPLICATE', 'created']);
      const digestsOf = (operation: 'mount' | 'uploadPut', name: string) =>
        requests(registry, operation).map(({ query }) => new URLSearchParams(query).get(name));
      const [mounts, uploads] = [digestsOf('mount', 'mount'), digestsOf('uploadPut', 'digest')];
      // Each once; those of the image that only the bad list wanted were asked for, and given up.
      expect(new Set(mounts).size).toBe(mounts.length);
      expect(new Set(uploads).size).toBe(uploads.length);
      expect(uploads.length).toBeLessThan(mounts.length);
      expect(registry.openSessions()).toBe(0);
      expect(registry.tagOf('x/all', 'bad')).toBeUndefined();
    }));

  it('since a layer is broken is not the beginning of as many tries as there are lists', () =>
    withRegistries('spec', 'spec', async (from, to) => {
      const broken = seedImage(from, 't/a', '1', { platform: amd64 });
      const lists = Array.from({ length: 10 }, (_, index) =>
        requestOf(`${to.host}/x/all:${index}`, [`${from.host}/t/a:1`]),
      );
      const { layers } = JSON.parse(broken.bytes.toString()) as { layers: { digest: string }[] };
      const layer = layers[0]?.digest ?? '';
      from.addFault({ path: new RegExp(layer), times: 9999, action: { kind: 'answer', status: 404 } });
      const error = await failureOf(publishAll([from, to], lists, { keepGoing: true, patient: true }));
      expect(error.message).toContain('10 of 10 lists failed');
      expect(requests(from, 'blobGet').filter(({ path }) => path.endsWith(layer)).length).toBeLessThanOrEqual(2);
    }));
});

describe('a list that shares a blob with one that cannot read it', () => {
  it('reads it at its own source', () =>
    withRegistry({ mount: { mode: 'ignore' } }, async (registry) => {
      const image = seedImage(registry, 't/bad', '1', { platform: amd64, seed: 'same' });
      for (const name of ['t/good', 't/other']) seedImage(registry, name, '1', { platform: amd64, seed: 'same' });
      const { layers } = JSON.parse(image.bytes.toString()) as { layers: { digest: string }[] };
      registry.addFault({
        operation: 'blobGet',
        path: new RegExp(`/t/bad/.*${layers[0]?.digest}`),
        times: 9999,
        action: { kind: 'answer', status: 404 },
      });
      const lists = ['bad', 'good', 'other'].map((name) => listOn(registry, `x/all:${name}`, [`t/${name}:1`]));
      const error = await failureOf(publishAll([registry], lists, { keepGoing: true }));
      expect(actionsOf(error.report)).toEqual(['BLOB_NOT_FOUND', 'created', 'created']);
      const uploads = requests(registry, 'uploadPut').map(({ query }) => new URLSearchParams(query).get('digest'));
      expect(new Set(uploads).size).toBe(uploads.length);
    }));
});

describe('a run of lists that is stopped', () => {
  it('ends in its signal, with what was done; no session is left, and nothing is asked afterwards', () =>
    withRegistry({ mount: { mode: 'ignore' } }, async (registry) => {
      const names = Array.from({ length: 18 }, (_, index) => `l${index}`);
      for (const name of names) seedImage(registry, `t/${name}`, '1', { platform: amd64 });
      // The first list gets through.
      const path = /\/x\/l[1-9]/;
      registry.addFault({ operation: 'uploadPut', path, times: 9999, action: { kind: 'stall' } });
      const lists = names.map((name) => listOn(registry, `x/${name}:1`, [`t/${name}:1`]));
      let stop: (reason: unknown) => void = () => undefined;
      const onStart = (given: typeof stop): void => {
        stop = given;
      };
      const onEvent = (event: PublishEvent): void => {
        const reason = new PublishError('INTERRUPTED', 'interrupted', 'hint');
        if (event.kind === 'list.done') setTimeout(() => stop(reason), 100);
      };
      const error = await failureOf(publishAll([registry], lists, { keepGoing: true, onStart, onEvent }));
      expect([error.code, error.exitCode]).toEqual(['INTERRUPTED', 130]);
      expect(error.moved).toEqual([`${registry.host}/x/l0:1`]);
      const actions = actionsOf(error.report);
      expect(actions[0]).toBe('created');
      expect(new Set(actions.slice(1))).toEqual(new Set(['INTERRUPTED', 'NOT_RUN']));
      expect(registry.openSessions()).toBe(0);
      const { length } = registry.journal;
      await new Promise((done) => setTimeout(done, 50));
      expect(registry.journal).toHaveLength(length);
    }));
});

describe('lists that cannot be published side by side', () => {
  it('since they want the same tag are refused, with their places, before any request', () =>
    withRegistry({}, async (registry) => {
      const lists = ['app.yaml:3:5', 'app.yaml:9:5'].map((origin) => ({
        ...listOn(registry, 'x/all:1', ['t/a:1']),
        origin,
      }));
      const error = await failureOf(publishAll([registry], lists));
      expect([error.code, error.exitCode]).toEqual(['USAGE_INVALID', 2]);
      expect(error.message).toContain('app.yaml:3:5 and app.yaml:9:5');
      expect(registry.journal).toEqual([]);
    }));

  it.each([
    ['oci:out:1', 'oci:./out/:1'],
    ['oci:/tmp//out', 'oci:/tmp/out:latest'],
  ])('since %s and %s are one tag of a layout are refused', (one, other) =>
    withRegistry({}, async (registry) => {
      const lists = [one, other].map((text) => ({
        ...listOn(registry, 'x/all:1', ['t/a:1']),
        targets: [parseReference(text)],
      }));
      const error = await failureOf(publishAll([registry], lists));
      expect([error.code, error.exitCode]).toEqual(['USAGE_INVALID', 2]);
      expect(registry.journal).toEqual([]);
    }),
  );

  it('since one is made from the tag of another are refused, too, unless it names a digest', () =>
    withRegistry({}, async (registry) => {
      const image = seedImage(registry, 'x/one', '1', { platform: amd64 });
      const first = listOn(registry, 'x/one:1', ['x/one:1']);
      const error = await failureOf(publishAll([registry], [first, listOn(registry, 'x/two:1', ['x/one:1'])]));
      expect(error.code).toBe('USAGE_INVALID');
      expect(registry.journal).toEqual([]);
      const pinned = listOn(registry, 'x/two:1', [`x/one@${image.descriptor.digest}`]);
      expect(actionsOf(await publishAll([registry], [first, pinned]))).toEqual(['updated', 'created']);
    }));
});

describe('lists in several repositories', () => {
  it('share what each of them holds', () =>
    withRegistries('spec', 'spec', async (near, far) => {
      const sources = sourcesOf(seedDebian(near)).map((source) => `${near.host}/${source}`);
      const lists = ['1', '2'].map((tag) =>
        requestOf(`${near.host}/x/all:${tag}`, sources, { also: [`${far.host}/x/all:${tag}`] }),
      );
      const report = await publishAll([near, far], lists);
      expect(counts(far)).toMatchObject({ manifestGet: 2, uploadPost: 40, uploadPut: 40, manifestPut: 10 });
      expect(requests(near, 'mount')).toHaveLength(40);
      expect(report.totals.blobs).toEqual({ present: 0, mounted: 40, copied: 40, skipped: 0 });
      expect(writes(near).every(({ repository }) => repository === 'x/all')).toBe(true);
    }));
});
