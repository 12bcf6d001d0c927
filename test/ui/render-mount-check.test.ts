import { describe, expect, test } from 'vitest';
import type { MountCheck } from '../../src/publish/mount-check-report.ts';
import { renderMountCheck } from '../../src/ui/render.ts';
import { textWidth } from '../../src/ui/text.ts';
import { expectGolden } from './golden.ts';
import * as sample from './samples.ts';

const DIGEST = `sha256:${'ab'.repeat(32)}` as MountCheck['blob']['digest'];

function step(
  number: number,
  method: string,
  what: string,
  repository: string,
  status: number | undefined,
  meaning: string,
): MountCheck['steps'][number] {
  return { step: number, method, what, repository, ...(status === undefined ? {} : { status }), meaning };
}

/** What Amazon's registry answered in aws/containers-roadmap#2860, as the check tells it. */
const REFERENCED: MountCheck = {
  schemaVersion: 1,
  target: 'reg.example.com/debian/debian',
  source: 'reg.example.com/debian/amd64:bullseye',
  write: true,
  blob: { digest: DIGEST, size: 181 },
  steps: [
    step(1, 'GET', 'manifest', 'debian/amd64:bullseye', 200, 'the source is there'),
    step(2, 'HEAD', 'blob', 'debian/amd64', 200, 'there, and no manifest names it'),
    step(3, 'POST', 'mount with from', 'debian/debian', 202, 'not mounted: an upload session, given up'),
    step(4, 'PUT', 'manifest', 'debian/amd64', 201, 'it names the blob'),
    step(5, 'POST', 'mount with from', 'debian/debian', 201, 'mounted'),
    step(6, 'DELETE', 'blob', 'debian/debian', undefined, 'it stays: no answer'),
  ],
  verdict: 'referenced',
  meaning: 'A blob is mounted only when a manifest of the source repository names it.',
  spec: 'OCI distribution-spec v1.1.1, section "Mounting a blob from another repository"',
  publish: 'mounts the 5 blobs of this image in as many requests and sends no byte of them.',
  registry: { kind: 'Amazon ECR', signs: ['host name: reg.example.com', 'Location: relative'] },
  left: [{ what: 'blob', repository: 'reg.example.com/debian/debian', digest: DIGEST }],
  notes: ['the target shows blobs of other repositories'],
};

const UNKNOWN: MountCheck = {
  ...REFERENCED,
  verdict: 'unknown',
  unknown: { because: 'the mount was refused: mount answered 403 DENIED', lied: false },
  registry: { signs: ['host name: reg.example.com'] },
  left: [],
  notes: [],
};

const THEMES = { plain: sample.PLAIN, narrow: sample.NARROW, color: sample.COLOR, ascii: sample.ASCII } as const;

describe.each(Object.entries({ 'mount-check': REFERENCED, 'mount-check-unknown': UNKNOWN }))('%s', (name, check) => {
  test.each(Object.entries(THEMES))('is shown as agreed: %s', (theme, value) => {
    expectGolden(`${name}.${theme}`, renderMountCheck(check, value));
  });

  test.each([60, 80, 120])('keeps within %i columns', (width) => {
    for (const line of renderMountCheck(check, { color: false, unicode: true, width }).split('\n')) {
      expect(textWidth(line), line).toBeLessThanOrEqual(width);
    }
  });
});

test('what a registry says cannot command a terminal or a runner', () => {
  const evil = 'x\u001b[2J\n::error::y ##[command]z';
  const check: MountCheck = {
    ...UNKNOWN,
    unknown: { because: evil, lied: false },
    registry: { signs: [`Server: ${evil}`] },
    steps: [step(1, 'POST', 'mount', evil, 403, evil)],
  };
  const text = renderMountCheck(check, sample.PLAIN);
  expect(text).not.toContain('\u001b');
  expect(text).not.toMatch(/^::|\s::error|##\[/m);
});
