import { describe, expect, it } from 'vitest';
import { parseDigest } from '../../src/model/digest.ts';
import type { ListReport, PublishReport } from '../../src/publish/report.ts';
import { renderSummary, reportDocument, type Theme } from '../../src/ui/render.ts';

const DIGEST = parseDigest(`sha256:${'a'.repeat(64)}`);

function report(lists: readonly ListReport[]): PublishReport {
  const blobs = { present: 0, mounted: 1, copied: 0, skipped: 0 };
  const totals = { blobs, bytesSent: 0, bytesSaved: 5, requests: 9, retries: 0, seconds: 1 };
  return { schemaVersion: 1, stage: 'content', lists, totals, warnings: [] };
}

const placed = [
  {
    repository: 'r.test/a',
    manifest: 'pushed' as const,
    blobs: [{ digest: DIGEST, size: 5, how: 'mounted' as const, bytesSent: 0 }],
  },
];
const image = { source: 'r.test/s:1', digest: DIGEST, size: 1, kind: 'image' as const, placed };

describe('the summary of a content stage', () => {
  const theme: Theme = { color: false, unicode: true, width: Number.POSITIVE_INFINITY };

  it('names the tags for which everything is placed, and counts their blobs once', () => {
    const list = { targets: [], content: ['r.test/a:1', 'r.test/a:2'], images: [image] };
    expect(renderSummary(report([list]), theme).split('\n')).toEqual([
      '1 list in 1.0 s',
      '  RESULT  REFERENCE   PLATFORMS  MOUNTED',
      '  placed  r.test/a:1          1        1',
      '  placed  r.test/a:2          1',
      expect.stringContaining('mounted 1'),
      '',
    ]);
  });

  it('tells of those that failed beside them', () => {
    const error = { code: 'DENIED' as const, message: 'no' };
    const failed = { reference: 'r.test/b:1', action: 'failed' as const, error };
    const text = renderSummary(report([{ targets: [failed], content: ['r.test/a:1'], images: [] }]), theme);
    expect(text).toMatch(/ {2}placed {2}r\.test\/a:1/);
    expect(text).toMatch(/ {2}failed {2}r\.test\/b:1/);
    expect(text).toContain('failed: r.test/b:1: no (DENIED)');
  });

  it('is in the document too, between targets and images', () => {
    const list = { targets: [], content: ['r.test/a:1'], images: [] };
    expect(JSON.stringify(reportDocument(report([list])))).toContain(
      '"lists":[{"targets":[],"content":["r.test/a:1"],"images":[]}]',
    );
  });
});
