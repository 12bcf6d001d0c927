import { describe, expect, it, test } from 'vitest';
import { PublishError } from '../../src/errors.ts';
import { parseReference } from '../../src/model/reference.ts';
import type { PublishEvent } from '../../src/publish/events.ts';
import { checkMounts } from '../../src/publish/mount-check.ts';
import type { BrokenMountCheck, MountCheck } from '../../src/publish/mount-check-report.ts';
import type {
  JournalEntry,
  ProfileChanges,
  RegistryOptions,
  RunningRegistry,
} from '../../src/registry-server/index.ts';
import { makeImage, makeIndex, putBuilt, seedAttested, seedImage } from '../helpers/images.ts';
import { withPorts } from '../helpers/publishing.ts';
import { requests, withRegistry, writes } from '../helpers/registry.ts';

const TARGET = 'debian/debian';
const SOURCE = 'debian/amd64';

type Asked = { readonly check: MountCheck; readonly events: readonly PublishEvent[] };

/** Checks and asserts what holds of every check, good or bad: no session stays open, no tag is touched. */
async function ask(
  registry: RunningRegistry,
  { write = false, source = `${SOURCE}:bullseye` }: { readonly write?: boolean; readonly source?: string } = {},
): Promise<Asked> {
  const events: PublishEvent[] = [];
  try {
    const target = parseReference(`${registry.host}/${TARGET}`);
    const check = await withPorts({ onEvent: (event) => events.push(event) }, (ports, signal) => {
      const clock = { ...ports.clock, sleep: async (milliseconds: number) => skip(registry, milliseconds) };
      return checkMounts(target, parseReference(`${registry.host}/${source}`), { write }, { ...ports, clock }, signal);
    });
    return { check, events };
  } finally {
    const opened = requests(registry, 'mount', 'uploadPost').some(({ status }) => status === 202);
    if (registry.profile.upload.cancel === '204') expect(registry.openSessions(), 'a session was left open').toBe(0);
    else if (opened) expect(requests(registry, 'uploadDelete').length).toBeGreaterThan(0);
    expect(registry.tagMoves.filter(({ repository }) => repository === TARGET)).toEqual([]);
  }
}

/** How far the clock of a registry is ahead: waits take no time. */
const ahead = new WeakMap<RunningRegistry, { milliseconds: number }>();

function skip(registry: RunningRegistry, milliseconds: number): void {
  const shift = ahead.get(registry);
  if (shift !== undefined) shift.milliseconds += milliseconds;
}

/** A registry of a profile that wants no login, with one image in the source and a target that is there. */
function withImage(profile: string, changes: ProfileChanges, use: (registry: RunningRegistry) => Promise<void>) {
  const shift = { milliseconds: 0 };
  const now = () => Date.now() + shift.milliseconds;
  const options: RegistryOptions = { profile, changes: { ...changes, auth: { scheme: 'none' } }, now };
  return withRegistry({ options }, (registry) => {
    ahead.set(registry, shift);
    registry.createRepository(TARGET);
    seedImage(registry, SOURCE, 'bullseye');
    registry.clearJournal();
    return use(registry);
  });
}

/** The requests that the check made, as `METHOD kind status`, cancellations of sessions aside. */
function story(registry: RunningRegistry): readonly string[] {
  return requests(registry)
    .filter(({ operation }) => operation !== 'uploadDelete')
    .map((entry) => `${entry.method} ${kindOf(entry)} ${entry.status}`);
}

function kindOf({ operation, repository, query }: JournalEntry): string {
  const where = repository === TARGET ? 'target' : 'source';
  if (operation !== 'mount') return `${operation} ${where}`;
  return new URLSearchParams(query).has('from') ? 'mount with from' : 'mount without from';
}

/** The registries of the embedded profiles; a login changes none of these. */
const PROFILES: readonly (readonly [profile: string, plain: MountCheck['verdict'], write: MountCheck['verdict']])[] = [
  ['spec', 'mounts', 'existence'],
  ['ecr-off', 'never', 'never'],
  ['ecr-mounting', 'mounts', 'referenced'],
  ['ecr-public', 'never', 'never'],
  ['docker-hub', 'mounts', 'existence'],
  ['ghcr', 'mounts', 'existence'],
  ['gar', 'mounts', 'existence'],
  ['acr', 'mounts', 'existence'],
  ['quay', 'mounts', 'existence'],
  ['quay-old', 'mounts', 'existence'],
  ['distribution-v3', 'mounts', 'existence'],
  ['distribution-v2', 'mounts', 'existence'],
  ['gitlab', 'mounts', 'existence'],
  ['harbor', 'mounts', 'existence'],
  ['nexus', 'never', 'never'],
  ['artifactory', 'never', 'never'],
  ['gitea', 'discovery', 'discovery'],
  ['zot', 'discovery', 'discovery'],
  ['serverless', 'mounts', 'existence'],
  ['serverless-2024', 'never', 'never'],
  ['nginx-1m', 'mounts', 'existence'],
];

describe('the verdict', () => {
  test.each(PROFILES)('of %s is %s, and with --write %s', async (profile, plain, write) => {
    await withImage(profile, {}, async (registry) => {
      const { check } = await ask(registry);
      expect(check.verdict, JSON.stringify(check.unknown)).toBe(plain);
      expect(writes(registry).filter(({ repository }) => repository === SOURCE)).toEqual([]);
    });
    await withImage(profile, {}, async (registry) => {
      const { check } = await ask(registry, { write: true });
      expect(check.verdict, JSON.stringify(check.unknown)).toBe(write);
    });
  });
});

describe('the requests', () => {
  it('are those of the ECR report: there by HEAD, 202, named by a manifest, 201; then all is deleted', () =>
    withImage('ecr-mounting', {}, async (registry) => {
      const { check } = await ask(registry, { write: true });
      expect(story(registry)).toEqual([
        'GET manifestGet source 200',
        'POST uploadPost source 202',
        'PUT uploadPut source 201',
        'HEAD blobHead source 200',
        'POST mount without from 202',
        'POST mount with from 202',
        'PUT manifestPut source 201',
        'HEAD manifestHead source 200',
        'POST mount with from 201',
        'HEAD blobHead target 200',
        'DELETE manifestDelete source 202',
        'DELETE blobDelete source 202',
        'DELETE blobDelete target 202',
      ]);
      expect(check.steps.map(({ method, status }) => `${method} ${status}`)).toEqual(
        story(registry).map((line) => line.replace(/ .* /, ' ')),
      );
      const digests = new Set(requests(registry, 'mount').map(({ query }) => new URLSearchParams(query).get('mount')));
      expect([...digests]).toEqual([check.blob.digest]);
      expect(registry.hasBlob(SOURCE, check.blob.digest)).toBe(false);
      expect(registry.hasBlob(TARGET, check.blob.digest)).toBe(false);
      expect(check.left).toEqual([]);
    }));

  it('write no manifest where the blob was mounted before', () =>
    withImage('spec', {}, async (registry) => {
      await ask(registry, { write: true });
      expect(requests(registry, 'manifestPut')).toEqual([]);
    }));

  it('without --write mount the config, and nothing else is written', () =>
    withImage('spec', {}, async (registry) => {
      const { check } = await ask(registry);
      expect(story(registry)).toEqual([
        'GET manifestGet source 200',
        'HEAD blobHead target 404',
        'POST mount without from 202',
        'POST mount with from 201',
        'HEAD blobHead target 200',
      ]);
      const left = [{ what: 'blob', repository: `${registry.host}/${TARGET}`, digest: check.blob.digest }];
      expect(check.left).toEqual(left);
      expect(registry.hasBlob(TARGET, check.blob.digest)).toBe(true);
    }));

  it('cancel every session that a refusal opens', () =>
    withImage('ecr-off', {}, async (registry) => {
      await ask(registry);
      expect(requests(registry, 'mount').map(({ status }) => status)).toEqual([202, 202]);
      expect(requests(registry, 'uploadDelete').map(({ status }) => status)).toEqual([204, 204]);
    }));

  it('wait for a blob and a manifest that are seen late, before a mount can be refused for that', () =>
    withImage('ecr-mounting', {}, async (registry) => {
      for (const operation of ['blobHead', 'manifestHead'] as const) {
        registry.addFault({ operation, repository: SOURCE, action: { kind: 'answer', status: 404 } });
      }
      const { check } = await ask(registry, { write: true });
      expect(check.verdict).toBe('referenced');
      expect(story(registry).filter((line) => line.includes('Head source'))).toEqual([
        'HEAD blobHead source 404',
        'HEAD blobHead source 200',
        'HEAD manifestHead source 404',
        'HEAD manifestHead source 200',
      ]);
    }));
});

describe('the source', () => {
  it('may be an index: the config of its first image is mounted, not that of an attestation', () =>
    withImage('spec', {}, async (registry) => {
      const platform = { architecture: 'arm64', os: 'linux' };
      seedAttested(registry, 'debian/arm64', 'bullseye', platform);
      registry.clearJournal();
      const { check } = await ask(registry, { source: 'debian/arm64:bullseye' });
      expect(check.blob.digest).toBe(makeImage('debian/arm64:bullseye', { platform }).blobs[0]?.descriptor.digest);
      expect(requests(registry, 'manifestGet')).toHaveLength(2);
    }));

  it('may be an index of indexes', () =>
    withImage('spec', {}, async (registry) => {
      const image = makeImage('deep');
      putBuilt(registry, 'debian/deep', makeIndex([{ manifest: makeIndex([{ manifest: image }]) }]), 'x');
      const { check } = await ask(registry, { source: 'debian/deep:x' });
      expect(check.blob.digest).toBe(image.blobs[0]?.descriptor.digest);
    }));

  test.each([false, true])('that is not there ends it, and nothing is written (write: %s)', (write) =>
    withImage('spec', {}, async (registry) => {
      const error = await failure(ask(registry, { write, source: 'debian/typo:bullseye' }));
      expect(error).toMatchObject({ code: 'MANIFEST_NOT_FOUND', exitCode: 4, side: 'source' });
      expect(writes(registry)).toEqual([]);
    }),
  );
});

describe('what is told', () => {
  it('says what will be written before it is, and lists what stayed', () =>
    withImage('distribution-v3', {}, async (registry) => {
      const written: number[] = [];
      const events: string[] = [];
      const target = parseReference(`${registry.host}/${TARGET}`);
      const source = parseReference(`${registry.host}/${SOURCE}:bullseye`);
      const onEvent = (event: PublishEvent): void => {
        if (event.kind !== 'warning') return;
        events.push(event.text);
        written.push(writes(registry).length);
      };
      const check = await withPorts({ onEvent }, (ports, signal) =>
        checkMounts(target, source, { write: true }, ports, signal),
      );
      expect(written).toEqual([0]);
      expect(events[0]).toContain(check.blob.digest);
      expect(events[0]).toContain(`${registry.host}/${SOURCE}`);
      // Deletes are off there.
      expect(check.left).toEqual([
        { what: 'blob', repository: `${registry.host}/${TARGET}`, digest: check.blob.digest },
        { what: 'blob', repository: `${registry.host}/${SOURCE}`, digest: check.blob.digest },
      ]);
      expect(check.steps.filter(({ method }) => method === 'DELETE').map(({ status }) => status)).toEqual([405, 405]);
    }));

  it('gives every verdict its measure in the specification and what publish does', () =>
    withImage('ecr-mounting', {}, async (registry) => {
      const { check } = await ask(registry, { write: true });
      expect(check.spec).toMatch(/distribution-spec v1\.1\.1, section "Mounting a blob from another repository"/);
      expect(check.meaning).toMatch(/only when a manifest of the source repository names it/);
      expect(check.publish).toMatch(/^mounts the \d+ blobs of this image/);
      expect(check.registry.signs).toContain('Docker-Distribution-Api-Version: registry/2.0');
    }));

  it('counts the bytes that publish will stream where nothing is mounted', () =>
    withImage('ecr-off', {}, async (registry) => {
      const { check } = await ask(registry);
      const { blobs } = makeImage(`${SOURCE}:bullseye`);
      const bytes = blobs.reduce((sum, { descriptor }) => sum + descriptor.size, 0);
      expect(check.publish).toContain(`streams ${bytes} bytes (${blobs.length} blobs)`);
    }));

  it('takes a 201 for less where the target had the blob before', () =>
    withImage('spec', {}, async (registry) => {
      const first = await ask(registry);
      const { check } = await ask(registry);
      expect(first.check.notes).toEqual([]);
      expect(check.notes).toEqual([expect.stringContaining('before it was mounted')]);
      expect(check.left).toEqual([]);
    }));

  it('sees a target that shows every blob, and says that publish will send none', () =>
    withImage('spec', { mount: { mode: 'ignore' } }, async (registry) => {
      registry.addFault({ operation: 'blobHead', repository: TARGET, action: { kind: 'answer', status: 200 } });
      const { check } = await ask(registry, { write: true });
      expect(check.verdict).toBe('never');
      expect(check.publish).toContain('sends none');
      expect(check.notes).toEqual([expect.stringContaining('shows blobs of other repositories')]);
    }));

  it('looks at the target only after the mounts, since on zot the look itself brings the blob in', () =>
    withImage('spec', {}, async (registry) => {
      await ask(registry, { write: true });
      const order = requests(registry, 'mount', 'blobHead').filter(({ repository }) => repository === TARGET);
      expect(order.map(({ operation }) => operation)).toEqual(['mount', 'mount', 'blobHead']);
    }));
});

describe('what cannot be told', () => {
  test.each([400, 401, 403, 404, 405])(
    'a mount that is answered %i is no verdict; its status and code are told',
    (status) =>
      withImage('spec', { mount: { mode: `off(${status})` } }, async (registry) => {
        const { check } = await ask(registry);
        expect(check).toMatchObject({ verdict: 'unknown', unknown: { lied: false } });
        expect(check.unknown?.because).toMatch(new RegExp(`^the mount was refused: mount answered ${status} [A-Z_]+$`));
        expect(check.publish).toContain('opens an upload without mount');
        const asked = check.steps.filter(({ method }) => method === 'POST').map((step) => step.status);
        expect(asked).toEqual([status, status, 202]);
      }),
  );

  it('a 201 without a blob behind it is a lie', () =>
    withImage('spec', { mount: { mode: 'lie201' } }, async (registry) => {
      const { check } = await ask(registry, { write: true });
      expect(check).toMatchObject({ verdict: 'unknown', unknown: { lied: true } });
      expect(requests(registry, 'mount').map(({ status }) => status)).toContain(201);
      expect(requests(registry, 'blobDelete').map(({ repository }) => repository)).toEqual([SOURCE]);
      expect(check.left).toEqual([]);
    }));

  it('nor is that blob left behind without --write', () =>
    withImage('spec', { mount: { mode: 'lie201' } }, async (registry) => {
      expect((await ask(registry)).check).toMatchObject({ unknown: { lied: true }, left: [] });
    }));

  it('nor does a manifest that is refused settle it; what was written is deleted all the same', () =>
    withImage('ecr-mounting', {}, async (registry) => {
      registry.addFault({ operation: 'manifestPut', action: { kind: 'answer', status: 400 } });
      const { check } = await ask(registry, { write: true });
      expect(check.verdict).toBe('unknown');
      expect(check.unknown?.because).toContain('no manifest could be made to name the blob');
      expect(requests(registry, 'manifestDelete')).toEqual([]);
      expect(check.left).toEqual([]);
      expect(registry.hasBlob(SOURCE, check.blob.digest)).toBe(false);
    }));

  it('a target that takes no uploads at all is an error of its own', () =>
    withImage('spec', { mount: { mode: 'off(405)' } }, async (registry) => {
      registry.addFault({ operation: 'uploadPost', action: { kind: 'answer', status: 405 } });
      expect(await failure(ask(registry))).toMatchObject({ code: 'UPLOAD_REFUSED', exitCode: 5 });
    }));
});

describe('a DELETE that is answered 404', () => {
  const answered404 = (registry: RunningRegistry, times: number) =>
    registry.addFault({ operation: 'blobDelete', times, action: { kind: 'answer', status: 404 } });

  it('says that the blob is gone when a look does not find it', () =>
    withImage('spec', {}, async (registry) => {
      answered404(registry, 2);
      registry.addFault({ operation: 'blobHead', nth: 3, times: 9, action: { kind: 'answer', status: 404 } });
      const { check } = await ask(registry, { write: true });
      expect(check.left).toEqual([]);
      expect(check.steps.slice(-2).map(({ method, meaning }) => `${method} ${meaning}`)).toEqual([
        'DELETE gone, or not to be deleted',
        'HEAD gone',
      ]);
    }));

  it('and that it stays when the look finds it: there may be no deletes at all', () =>
    withImage('spec', {}, async (registry) => {
      answered404(registry, 2);
      const { check } = await ask(registry, { write: true });
      expect(check.left).toHaveLength(2);
      expect(check.steps.at(-1)?.meaning).toBe('it stays');
    }));
});

describe('a failure under way', () => {
  /** Runs a check that fails. */
  async function broken(registry: RunningRegistry, controller = new AbortController()) {
    const told: BrokenMountCheck[] = [];
    const target = parseReference(`${registry.host}/${TARGET}`);
    const source = parseReference(`${registry.host}/${SOURCE}:bullseye`);
    const options = { write: true, onFailure: (what: BrokenMountCheck) => void told.push(what) };
    const error = await failure(
      withPorts({ network: { retries: 0 } }, (ports) => checkMounts(target, source, options, ports, controller.signal)),
    );
    return { error, broken: told[0], times: told.length };
  }

  it('tells its steps and what stays beside the error', () =>
    withImage('spec', { delete: { blob: '405' } }, async (registry) => {
      registry.addFault({ operation: 'blobHead', repository: TARGET, action: { kind: 'answer', status: 429 } });
      const { error, broken: told, times } = await broken(registry);
      expect(times).toBe(1);
      expect(told).toMatchObject({
        schemaVersion: 1,
        write: true,
        verdict: 'unknown',
        unknown: { because: error.message },
      });
      expect(told?.left.map(({ what, repository }) => `${what} ${repository}`)).toEqual(
        [TARGET, SOURCE].map((repository) => `blob ${registry.host}/${repository}`),
      );
      const failed = told?.steps.find(({ meaning }) => meaning.startsWith('failed: '));
      expect(failed).toMatchObject({ method: 'HEAD', repository: TARGET, status: 429 });
    }));

  it('leaves no blob where its upload was refused, and deletes none', () =>
    withImage('spec', {}, async (registry) => {
      registry.addFault({ operation: 'uploadPut', times: 9, action: { kind: 'answer', status: 400 } });
      const { broken: told } = await broken(registry);
      expect(told?.left).toEqual([]);
      expect(requests(registry, 'blobDelete')).toEqual([]);
    }));

  it('by a signal does not promise that a second run goes on where it ended', () =>
    withImage('spec', {}, async (registry) => {
      registry.addFault({ operation: 'manifestGet', action: { kind: 'stall' } });
      const controller = new AbortController();
      const hint = 'Run the same command again: what is already in place is not sent twice.';
      const looking = setInterval(() => {
        const asked = registry.journal.length > 0;
        if (asked) controller.abort(new PublishError('INTERRUPTED', 'interrupted (SIGINT)', hint));
      }, 10);
      const { error } = await broken(registry, controller).finally(() => clearInterval(looking));
      expect(error).toMatchObject({ code: 'INTERRUPTED', exitCode: 130 });
      expect(error.hint).toBe('Run the same command again: it begins anew, with a blob of its own.');
    }));

  it('takes away what was written, and says what it could not', () =>
    withImage('spec', { delete: { blob: '405' } }, async (registry) => {
      registry.addFault({ operation: 'blobHead', repository: TARGET, action: { kind: 'answer', status: 429 } });
      const events: PublishEvent[] = [];
      const target = parseReference(`${registry.host}/${TARGET}`);
      const source = parseReference(`${registry.host}/${SOURCE}:bullseye`);
      const options = { onEvent: (event: PublishEvent) => events.push(event), network: { retries: 0 } };
      const error = await failure(
        withPorts(options, (ports, signal) => checkMounts(target, source, { write: true }, ports, signal)),
      );
      expect(error.code).toBe('RATE_LIMITED');
      expect(requests(registry, 'blobDelete').map(({ repository }) => repository)).toEqual([TARGET, SOURCE]);
      const told = events.map((event) => (event.kind === 'warning' ? event.text : ''));
      expect(told.slice(1).map((text) => text.replace(/sha256:\w+/, 'DIGEST'))).toEqual(
        [TARGET, SOURCE].map((repository) => `mount-check leaves the blob DIGEST in ${registry.host}/${repository}`),
      );
      expect(registry.openSessions()).toBe(0);
    }));
});

async function failure(promise: Promise<unknown>): Promise<PublishError> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof PublishError) return error;
    throw error;
  }
  throw new Error('it did not fail');
}
