import { describe, expect, it } from 'vitest';
import { githubOutputs } from '../../src/cli/github-outputs.ts';
import { type ErrorDocument, PublishError } from '../../src/errors.ts';
import { parseDigest } from '../../src/model/digest.ts';
import type { ImageOutcome, ListReport, PublishReport } from '../../src/publish/report.ts';
import { errorDocument, renderStepSummary } from '../../src/ui/render.ts';

const digest = (seed: number) => parseDigest(`sha256:${seed.toString(16).padStart(64, '0')}`);
const MB = 1_000_000;

function image(seed: number, blobs = 2, architecture = 'amd64'): ImageOutcome {
  return {
    source: `r.test/app@${digest(seed)}`,
    digest: digest(seed),
    size: 500,
    kind: 'image',
    platform: { os: 'linux', architecture },
    placed: [
      {
        repository: 'r.test/app',
        manifest: 'pushed',
        blobs: Array.from({ length: blobs }, (_, at) => ({
          digest: digest(seed * 1000 + at),
          size: 31_400_000,
          how: at === 0 ? ('copied' as const) : ('mounted' as const),
          bytesSent: at === 0 ? 31_400_000 : 0,
          ...(at === 0 ? { why: 'mount answered 202' } : {}),
        })),
      },
    ],
  };
}

function list(name: string, images: readonly ImageOutcome[]): ListReport {
  const index = { mediaType: 'application/vnd.oci.image.index.v1+json', digest: digest(7), size: 600, manifests: [] };
  const targets = ['1', 'latest'].map((tag) => ({
    reference: `r.test/${name}:${tag}`,
    digest: digest(7),
    action: 'created' as const,
  }));
  return { targets, index, images };
}

function reportOf(lists: readonly ListReport[], more: Partial<PublishReport> = {}): PublishReport {
  const blobs = { present: 1, mounted: 2, copied: 3, skipped: 0 };
  const totals = { blobs, bytesSent: 5, bytesSaved: 6, requests: 7, retries: 0, seconds: 1.5 };
  return { schemaVersion: 1, lists, totals, warnings: [], ...more };
}

const failure = (code: 'DENIED', message: string): ErrorDocument =>
  errorDocument(new PublishError(code, message, 'Log in.', { side: 'target', moved: [] }));

describe('the step summary', () => {
  it('gives the reference to copy first, then the platforms, then what happened to each blob', () => {
    const text = renderStepSummary(reportOf([list('app', [image(1), image(2, 1, 'arm64')])]), undefined, MB);
    expect(text.split('\n').slice(0, 10)).toEqual([
      '### `r.test/app:1`',
      '',
      '~~~text',
      `r.test/app@${digest(7)}`,
      '~~~',
      '',
      '| platform | digest | size | how |',
      '| --- | --- | --- | --- |',
      `| \`linux/amd64\` | \`${digest(1)}\` | 62.8 MB | mounted, copied (mount answered 202) |`,
      `| \`linux/arm64\` | \`${digest(2)}\` | 31.4 MB | copied (mount answered 202) |`,
    ]);
    expect(text).toContain(`| created | \`r.test/app:latest\` | \`${digest(7)}\` |`);
    expect(text).toContain('<details><summary>Blobs</summary>\n\n| image |');
    expect(text.trimEnd().endsWith('</details>')).toBe(true);
  });

  it('of a dry run gives no reference that could be pulled', () => {
    const text = renderStepSummary(reportOf([list('app', [image(1)])], { dryRun: true }), undefined, MB);
    expect(text).toContain('### `r.test/app:1` (dry run)');
    expect(text).toContain(`~~~text\n${digest(7)}\n~~~`);
    expect(text).toContain('nothing was mounted, sent or written');
  });

  it('leaves out rows of blobs first, and says how many', () => {
    const report = reportOf([list('app', [image(1, 9000), image(2, 900, 'arm64')])]);
    const whole = renderStepSummary(report, undefined, 100 * MB);
    const text = renderStepSummary(report, undefined, MB);
    expect(Buffer.byteLength(whole)).toBeGreaterThan(MB);
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(MB);
    expect(Buffer.byteLength(text)).toBeGreaterThan(0.95 * MB);
    expect(text).toContain('`linux/arm64`');
    const rows = (markdown: string) => markdown.split('\n').filter((line) => line.startsWith('| `linux')).length;
    expect(text).toContain(`\n${rows(whole) - rows(text)} rows were left out`);
    expect(text).toContain('</details>');
  });

  it('of many lists has a row for each tag, then the images of each as far as there is room', () => {
    const lists = Array.from({ length: 300 }, (_, at) => list(`app${at}`, [image(1, 20), image(2, 20, 'arm64')]));
    const text = renderStepSummary(reportOf(lists), undefined, MB);
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(MB);
    expect(text.startsWith('### 300 lists\n')).toBe(true);
    for (const name of ['app0:1', 'app299:latest']) expect(text).toContain(`| created | \`r.test/${name}\``);
    expect(text.match(/<details>/g)?.length).toBe(text.match(/<\/details>/g)?.length);
    expect(text).toContain('<summary>r.test/app299:1</summary>');
  });

  it('fits even where lists alone do not', () => {
    const lists = Array.from({ length: 9000 }, (_, at) => list(`app${at}`, []));
    const text = renderStepSummary(reportOf(lists), undefined, MB);
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(MB);
    expect(text).toContain('rows were left out');
  });

  it('of a failure has the error, what was moved, and what to do', () => {
    const text = renderStepSummary(undefined, failure('DENIED', 'no `way` | ::error::x\n~~~\n# big').error, MB);
    expect(text).toBe(
      '### Not published\n\n~~~text\nerror: no `way` | |::error::x ~~~ # big\nDENIED (exit 3) · no tag was moved\nhint: Log in.\n~~~\n\n',
    );
  });

  it('takes no Markdown from platforms, references, warnings and reasons', () => {
    const evil = '`|\\<img src=x>[a](https://b.test)*c*';
    const hostile: ImageOutcome = { ...image(1), platform: { os: evil, architecture: evil } };
    const lists = [
      { ...list('app', [hostile]), targets: [{ reference: evil, digest: digest(1), action: 'created' as const }] },
    ];
    for (const report of [reportOf(lists, { warnings: [evil] }), reportOf([...lists, ...lists])]) {
      const text = renderStepSummary(report, undefined, MB);
      // Neither a fence nor a line of HTML is read as Markdown.
      const shown = text.replace(/^(?:~~~text\n.*\n~~~|<details>.*)$/gm, '');
      expect(shown).not.toMatch(/(?<!\\)<img|(?<!\\)\[a\]|(?<!\\)\*c|\n.*(?<!\\)`.*\|\\</);
      expect(text).not.toMatch(/^<details>.*<(?!\/?(?:details|summary)>)/m);
      const rows = text.split('\n').filter((line) => line.startsWith('| '));
      for (const row of rows) expect([3, 4, 5, 7]).toContain(row.match(/(?<!\\)\|/g)?.length);
    }
  });
});

describe('outputs', () => {
  it('of one list', () => {
    const report = reportOf([list('app', [image(1), image(2, 1, 'arm64')])]);
    expect(githubOutputs(report, undefined, false)).toEqual({
      digest: digest(7),
      ref: `r.test/app@${digest(7)}`,
      json: JSON.stringify(report),
      tags: 'r.test/app:1\nr.test/app:latest',
      digests: `linux/amd64=${digest(1)}\nlinux/arm64=${digest(2)}`,
      metadata: expect.stringContaining('"image.name": "r.test/app:1,r.test/app:latest"'),
    });
  });

  it('of a dry run hold nothing that could be pulled', () => {
    const report = reportOf([list('app', [image(1)])], { dryRun: true });
    const outputs = githubOutputs(report, undefined, false);
    expect(outputs).toMatchObject({ digest: digest(7), ref: '', tags: '', metadata: '' });
    expect(outputs.digests).toBe(`linux/amd64=${digest(1)}`);
  });

  it('of a failure hold the error, and the tags that are in place', () => {
    const none = githubOutputs(undefined, failure('DENIED', 'no'), false);
    expect(none).toMatchObject({ digest: '', ref: '', tags: '', digests: '', metadata: '' });
    expect(JSON.parse(none.json)).toMatchObject({ error: { code: 'DENIED' } });
    const report = reportOf([list('app', [image(1)])]);
    const some = githubOutputs(report, failure('DENIED', 'no'), false);
    expect(some).toMatchObject({ digest: '', ref: '', tags: 'r.test/app:1\nr.test/app:latest', metadata: '' });
    expect(JSON.parse(some.json)).toMatchObject({ error: { code: 'DENIED' }, report: { schemaVersion: 1 } });
  });

  it('of several lists have a line for each', () => {
    const outputs = githubOutputs(reportOf([list('a', [image(1)]), list('b', [image(2)])]), undefined, true);
    expect(outputs.digest).toBe(`${digest(7)}\n${digest(7)}`);
    expect(outputs.ref).toBe(`r.test/a@${digest(7)}\nr.test/b@${digest(7)}`);
    expect(outputs.digests).toBe('');
    expect(Object.keys(JSON.parse(outputs.metadata))).toEqual(['r.test/a:1', 'r.test/b:1']);
  });

  it('hold no part of a metadata file that is too long', () => {
    const lists = Array.from({ length: 2000 }, (_, at) => list(`${'long/'.repeat(30)}app${at}`, [image(1)]));
    expect(githubOutputs(reportOf(lists), undefined, true).metadata).toBe('');
    expect(githubOutputs(reportOf(lists.slice(0, 100)), undefined, true).metadata).not.toBe('');
  });

  it('leave blobs out of a report that is too long, and say so', () => {
    const report = reportOf([list('app', [image(1, 9000)])]);
    const { json } = githubOutputs(report, undefined, false);
    expect(Buffer.byteLength(json)).toBeLessThan(500_000);
    const told = JSON.parse(json) as PublishReport;
    expect(told.lists[0]?.images[0]?.placed[0]?.blobs).toEqual([]);
    expect(told.totals).toEqual(report.totals);
    expect(told.warnings).toEqual([expect.stringContaining('blobs were left out')]);
  });
});
