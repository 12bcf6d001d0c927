import { describe, expect, test } from 'vitest';
import { PublishError } from '../../src/errors.ts';
import {
  errorDocument,
  renderError,
  renderInspection,
  renderPlan,
  renderSummary,
  renderVerification,
  type Theme,
} from '../../src/ui/render.ts';
import { textWidth } from '../../src/ui/text.ts';
import { expectGolden } from './golden.ts';
import * as sample from './samples.ts';

const DENIED = new PublishError(
  'DENIED',
  'may not push to docker.io/acme/app: the registry says "denied: requested access to the resource is denied"',
  'Log in with an account that may push: docker login docker.io',
  { side: 'target', registry: 'docker.io', repository: 'acme/app', status: 403 },
);

const DOCUMENTS: Readonly<Record<string, (theme: Theme) => string>> = {
  plan: (theme) => renderPlan(sample.PLAN, theme),
  summary: (theme) => renderSummary(sample.REPORT, theme),
  'summary-unchanged': (theme) => renderSummary(sample.UNCHANGED, theme),
  'summary-many': (theme) => renderSummary(sample.MANY, theme),
  'summary-repositories': (theme) => renderSummary(sample.REPOSITORIES, theme),
  'summary-dry-run': (theme) => renderSummary(sample.DRY, theme),
  tree: (theme) => renderInspection(sample.INSPECTION, theme),
  'tree-nested': (theme) => renderInspection(sample.NESTED, theme),
  'tree-image': (theme) => renderInspection(sample.SINGLE, theme),
  verified: (theme) => renderVerification(sample.VERIFIED, theme),
  broken: (theme) => renderVerification(sample.BROKEN, theme),
  error: (theme) => renderError(DENIED, theme, { tags: [] }),
};

const THEMES = {
  plain: sample.PLAIN,
  wide: sample.WIDE,
  narrow: sample.NARROW,
  color: sample.COLOR,
  ascii: sample.ASCII,
} as const;

describe.each(Object.entries(DOCUMENTS))('%s', (name, render) => {
  test.each(Object.entries(THEMES))('is shown as agreed: %s', (theme, value) => {
    expectGolden(`${name}.${theme}`, render(value));
  });

  test('has no escape without colour and some with it', () => {
    expect(render(sample.WIDE)).not.toContain('\u001b');
    expect(render(sample.COLOR)).toContain('\u001b[');
  });

  test('is ASCII on a stream that shows nothing else', () => {
    expect(render(sample.ASCII)).toMatch(/^[\n -~]*$/);
  });

  test.each([60, 80, 100, 160])('keeps tables and flows within %i columns', (width) => {
    const lines = render({ color: false, unicode: true, width }).split('\n');
    // The head names a reference with its whole digest and an error its whole message: they are for copying.
    const rest = name === 'error' ? lines.slice(1, -2) : lines.slice(1);
    const free = rest.filter((line) => !line.startsWith('  failed: '));
    for (const line of free) expect(textWidth(line), line).toBeLessThanOrEqual(width);
  });
});

test('blobs that lists share are told of once, so that the columns add up to the totals', () => {
  const [list] = sample.REPORT.lists;
  const shared = { ...sample.REPORT, lists: list === undefined ? [] : [list, list] };
  const lines = renderSummary(shared, sample.PLAIN).split('\n');
  expect(lines.filter((line) => / 3 +3 +1$/.test(line))).toHaveLength(1);
});

test('a tree draws what is missing in its place', () => {
  const children = (sample.INSPECTION.children ?? []).map((child, at) =>
    at === 1 ? { ...child, kind: 'missing' as const, layers: [] } : child,
  );
  const lines = renderInspection({ ...sample.INSPECTION, children }, sample.PLAIN).split('\n');
  expect(lines[2]).toMatch(/^├─ linux\/amd64 +sha256:[0-9a-f]{64} +missing in the registry$/);
  expect(lines[1]).toMatch(/^├─ linux\/386 .* 2 layers$/);
});

describe('failures', () => {
  test('name tags that were moved before', () => {
    const tags = [
      { kind: 'tag.done', reference: 'docker.io/acme/app:1', digest: sample.digest('i'), action: 'created' },
      { kind: 'tag.done', reference: 'docker.io/acme/app:2', digest: sample.digest('i'), action: 'unchanged' },
    ] as const;
    const text = renderError(DENIED, sample.WIDE, { tags });
    expect(text).toContain('moved before this: docker.io/acme/app:1');
    expect(text).not.toContain('app:2');
  });

  test('name moved tags that only the error knows, each once', () => {
    const moved = ['docker.io/acme/app:1', 'docker.io/acme/app:2'];
    const tag = { kind: 'tag.done', reference: moved[0] ?? '', digest: sample.digest('i'), action: 'created' } as const;
    const text = renderError(DENIED.with({ moved }), sample.WIDE, { tags: [tag] });
    expect(text).toContain('moved before this: docker.io/acme/app:1, docker.io/acme/app:2');
    expect(renderError(DENIED.with({ moved: [] }), sample.WIDE)).toContain('no tag was moved');
  });

  test('say nothing of tags when the command moves none', () => {
    expect(renderError(DENIED, sample.WIDE)).not.toContain('tag');
  });

  test('keep messages of causes to themselves, which may quote secrets', () => {
    const cause = new SyntaxError('Unexpected token s, "s3cret-passw"... is not valid JSON');
    const error = new PublishError('CREDENTIALS_FAILED', 'the helper answered no JSON', 'Run it by hand.', { cause });
    expect(renderError(error, sample.WIDE, { debug: true })).not.toContain('s3cret');
  });

  test('of ours are called a bug, with frames only for --debug', () => {
    const bug = new TypeError('x is undefined');
    expect(renderError(bug, sample.WIDE)).toBe(
      'error: this is a bug of manifest-publish: TypeError: x is undefined\n' +
        'hint: Please report it, with the output of the same command and --debug.\n',
    );
    expect(renderError(bug, sample.WIDE, { debug: true })).toMatch(/^ {2}at .*render\.test\.ts/m);
    expect(renderError('text', sample.WIDE)).toContain('bug of manifest-publish: text');
  });

  test('are documents with the same exit code under --json', () => {
    expect(errorDocument(DENIED)).toEqual({
      error: {
        code: 'DENIED',
        message: DENIED.message,
        hint: DENIED.hint,
        side: 'target',
        registry: 'docker.io',
        repository: 'acme/app',
        status: 403,
        exitCode: 3,
      },
    });
    expect(Object.keys(errorDocument(new PublishError('USAGE_INVALID', 'm', 'h')).error)).toEqual([
      'code',
      'message',
      'hint',
      'side',
      'exitCode',
    ]);
    expect(errorDocument(DENIED.with({ moved: ['a/b:1'] })).error).toMatchObject({ moved: ['a/b:1'] });
    expect(errorDocument(new TypeError('x')).error).toMatchObject({ code: 'BUG', exitCode: 1 });
  });
});

test('lists that were not run are not called failed', () => {
  const [list] = sample.MANY.lists;
  if (list === undefined) throw new Error('a sample without a list');
  const error = { code: 'NOT_RUN', message: 'not done, since another failed: a long reason' } as const;
  const notRun = ['a', 'b', 'c'].map((tag) => ({
    ...list,
    targets: [{ reference: `ghcr.io/acme/app:${tag}`, action: 'failed' as const, error }],
    images: [],
  }));
  const text = renderSummary({ ...sample.MANY, lists: [...sample.MANY.lists, ...notRun] }, sample.WIDE);
  expect(text).toContain('1 failed, 3 not run');
  expect(text.match(/^ {2}not run +ghcr\.io/gm)).toHaveLength(3);
  expect(text).toContain('not run: ghcr.io/acme/app:a, ghcr.io/acme/app:b, ghcr.io/acme/app:c');
  expect(text).not.toContain('a long reason');
});

test('why lists failed is not said again after a summary', () => {
  const cause = new PublishError('DENIED', 'a long reason', 'Log in.');
  const error = new PublishError(
    'LISTS_FAILED',
    '2 of 3 lists failed: a, b; the first because a long reason',
    'Log in.',
    {
      cause,
    },
  );
  expect(renderError(error, sample.PLAIN)).toContain('a long reason');
  expect(renderError(error, sample.PLAIN, { summarised: true })).toMatch(/2 of 3 lists failed: a, b\n/);
  expect(renderError(cause, sample.PLAIN, { summarised: true })).toContain('a long reason');
});

test('a reference with its digest is not given it again, and of a layout nothing is downloaded', () => {
  const { digest } = sample.VERIFIED;
  const named = { ...sample.VERIFIED, reference: `ghcr.io/acme/app:1@${digest}` };
  expect(renderVerification(named, sample.WIDE).split('\n')[0]).toBe(`✔ verified ghcr.io/acme/app:1@${digest}`);
  const layout = { ...sample.VERIFIED, reference: 'oci:out:1' };
  for (const deep of [true, false]) {
    expect(renderVerification({ ...layout, deep }, sample.WIDE)).not.toContain('download');
  }
});
