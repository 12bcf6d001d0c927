import { describe, expect, it } from 'vitest';
import { releaseFaults, releaseNotes } from '../scripts/release-checks.ts';

const json = (version: string) => JSON.stringify({ version });
const CHANGELOG =
  '# Changelog\n\n## Unreleased\n\n- next\n\n## 1.2.3 (2026-12-01)\n\n- one\n- two\n\n## 1.2.2\n\n- old\n';
const GOOD = {
  tag: 'v1.2.3',
  packageJson: json('1.2.3'),
  packageLock: json('1.2.3'),
  commandManifest: json('1.2.3'),
  changelog: CHANGELOG,
};

describe('a release', () => {
  it('may be made when tag, files and changelog have one version', () => {
    expect(releaseFaults(GOOD)).toEqual([]);
  });

  it.each([
    [{ tag: 'v1.2.4' }, 'the tag v1.2.4 is not v1.2.3, the version in package.json'],
    [{ tag: '1.2.3' }, 'the tag 1.2.3 is not v1.2.3, the version in package.json'],
    [{ packageLock: json('1.2.2') }, 'package-lock.json has another version: run npm install'],
    [{ commandManifest: json('1.2.2') }, 'oclif.manifest.json has another version: run npm run generate'],
    [{ changelog: '# Changelog\n\n## Unreleased\n\n- next\n' }, 'CHANGELOG.md has nothing under a heading "## 1.2.3"'],
    [{ changelog: '## 1.2.3\n\n## 1.2.2\n\n- old\n' }, 'CHANGELOG.md has nothing under a heading "## 1.2.3"'],
    [{ packageLock: '{"version":"1.2.3","resolved":"x"}' }, 'package-lock.json names download addresses'],
  ])('%o: %s', (change, fault) => {
    expect(releaseFaults({ ...GOOD, ...change })).toEqual([fault]);
  });

  it('is none of a pre-release, which npm would make the latest', () => {
    const version = '1.2.3-rc.1';
    const files = { packageJson: json(version), packageLock: json(version), commandManifest: json(version) };
    const changelog = CHANGELOG.replace('1.2.3', version);
    expect(releaseFaults({ ...files, tag: `v${version}`, changelog })).toEqual([
      '1.2.3-rc.1 is a pre-release: npm would have to be told a tag for it',
    ]);
  });

  it('has the notes of its version alone', () => {
    expect(releaseNotes(CHANGELOG, '1.2.3')).toBe('- one\n- two');
    expect(releaseNotes(CHANGELOG, '1.2')).toBeUndefined();
  });
});
