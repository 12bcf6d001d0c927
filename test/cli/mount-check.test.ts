import { describe, expect, it, test } from 'vitest';
import { mountExpectation, mountFailure, oneRegistry } from '../../src/cli/mount-check.ts';
import { digestOf } from '../../src/model/digest.ts';
import { MOUNT_VERDICTS, type MountCheck, type MountVerdict } from '../../src/publish/mount-check-report.ts';

function found(verdict: MountVerdict | 'unknown', lied = false): MountCheck {
  return {
    schemaVersion: 1,
    target: 'reg.test:5000/debian/debian',
    source: 'reg.test:5000/debian/amd64:bullseye',
    write: false,
    blob: { digest: digestOf(new Uint8Array()), size: 0 },
    steps: [],
    verdict,
    ...(verdict === 'unknown' ? { unknown: { because: 'no reason', lied } } : {}),
    meaning: '',
    spec: '',
    publish: '',
    registry: { signs: [] },
    left: [],
    notes: [],
  };
}

describe('--expect', () => {
  it('takes the verdicts and nothing else', () => {
    for (const verdict of MOUNT_VERDICTS) expect(mountExpectation(verdict)).toBe(verdict);
    expect(mountExpectation(undefined)).toBeUndefined();
    for (const text of ['unknown', 'Existence', '', 'sometimes']) {
      expect(() => mountExpectation(text)).toThrow(/--expect must be one of existence, referenced, discovery/);
    }
  });

  /** Exit codes by what was expected, for each verdict. */
  const CODES: Readonly<Record<MountVerdict, Readonly<Record<MountVerdict, number>>>> = {
    existence: { existence: 0, referenced: 6, discovery: 6, never: 6, mounts: 0 },
    referenced: { existence: 6, referenced: 0, discovery: 6, never: 6, mounts: 0 },
    discovery: { existence: 6, referenced: 6, discovery: 0, never: 6, mounts: 0 },
    never: { existence: 6, referenced: 6, discovery: 6, never: 0, mounts: 6 },
    // Whether existence is enough was not asked.
    mounts: { existence: 5, referenced: 5, discovery: 6, never: 6, mounts: 0 },
  };

  test.each(MOUNT_VERDICTS.flatMap((verdict) => MOUNT_VERDICTS.map((expected) => [verdict, expected] as const)))(
    'found %s, expected %s',
    (verdict, expected) => {
      expect(mountFailure(found(verdict), expected)?.exitCode ?? 0).toBe(CODES[verdict][expected]);
    },
  );

  it('is not needed: any verdict is good without it, but none is not', () => {
    for (const verdict of MOUNT_VERDICTS) expect(mountFailure(found(verdict), undefined)).toBeUndefined();
    for (const expected of [undefined, ...MOUNT_VERDICTS]) {
      expect(mountFailure(found('unknown'), expected)).toMatchObject({ code: 'REGISTRY_FAILED', exitCode: 5 });
      expect(mountFailure(found('unknown', true), expected)).toMatchObject({ code: 'PROTOCOL_VIOLATED', exitCode: 6 });
    }
  });

  it('says --write where that would tell', () => {
    expect(mountFailure(found('mounts'), 'existence')?.hint).toContain('--write');
  });

  it('names registry and repository in its own fields', () => {
    const failure = mountFailure(found('never'), 'mounts');
    expect(failure).toMatchObject({ side: 'target', registry: 'reg.test:5000', repository: 'debian/debian' });
    expect(failure?.message).toBe('reg.test:5000/debian/debian: the verdict is never, not mounts');
  });
});

describe('target and source', () => {
  it('are two repositories of one registry', () => {
    expect(oneRegistry('acme/app', 'docker.io/acme/app-arm64:1')).toMatchObject({
      target: { host: 'docker.io', repository: 'acme/app' },
      source: { host: 'docker.io', repository: 'acme/app-arm64', tag: '1' },
    });
    expect(oneRegistry('index.docker.io/acme/app', 'acme/x').target.host).toBe('docker.io');
  });

  test.each([
    ['ghcr.io/acme/app', 'docker.io/acme/app', 'mounts work within one registry: ghcr.io and docker.io are two'],
    ['ghcr.io/acme/app', 'ghcr.io/acme/app:1', 'both target and source'],
    ['ghcr.io/acme/APP', 'ghcr.io/acme/x', 'lowercase'],
    ['oci:out:1', 'oci:out:2', 'oci:out is a folder, which mounts nothing'],
  ])('%s and %s: exit 2', (target, source, message) => {
    expect(() => oneRegistry(target, source)).toThrow(message);
    try {
      oneRegistry(target, source);
    } catch (error) {
      expect(error).toMatchObject({ exitCode: 2 });
    }
  });
});
