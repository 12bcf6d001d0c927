import { Writable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import type { HttpEvent } from '../../src/http/message.ts';
import { createProgress, effectiveMode, type Progress, type ProgressOptions } from '../../src/ui/progress.ts';
import { expectGolden } from './golden.ts';
import { danger } from './hostile.ts';
import { digest, PLAIN } from './samples.ts';
import { REQUEST, REST, RETRY, STORY } from './story.ts';

/** Progress on a stream that is no terminal, with a clock that is turned by hand. */
function bench(options: Partial<ProgressOptions> = {}) {
  const written: string[] = [];
  const stream = new Writable({
    write(chunk, _encoding, done) {
      written.push(String(chunk));
      done();
    },
  });
  let time = 0;
  const ticks = new Set<() => void>();
  const progress = createProgress({
    mode: 'auto',
    stream,
    theme: PLAIN,
    ci: false,
    quiet: false,
    debug: false,
    now: () => time,
    every: (_milliseconds, tick) => {
      ticks.add(tick);
      return () => ticks.delete(tick);
    },
    ...options,
  });
  return {
    progress,
    text: () => written.join(''),
    pass(milliseconds: number) {
      time += milliseconds;
      for (const tick of ticks) tick();
    },
    ticking: () => ticks.size,
  };
}

function tell(progress: Progress, events: typeof STORY): void {
  for (const event of events) progress.emit(event);
}

async function tellAll(options: Partial<ProgressOptions>): Promise<string> {
  const { progress, text, pass } = bench(options);
  tell(progress, STORY.slice(0, 2));
  pass(10_000);
  tell(progress, STORY.slice(2, -1));
  progress.http(REQUEST);
  pass(2_000);
  tell(progress, STORY.slice(-1));
  progress.http(RETRY);
  pass(8_000);
  tell(progress, REST);
  pass(10_000);
  await progress.stop();
  return text();
}

describe('a log', () => {
  test('has a line for each image, tag and warning and one every ten seconds', async () => {
    expectGolden('progress.plain', await tellAll({ mode: 'plain' }));
  });

  test('has a line a request with --debug', async () => {
    expectGolden('progress.debug', await tellAll({ mode: 'tty', debug: true }));
  });

  test('is harmless whatever the registry said', async () => {
    expect(danger(await tellAll({ mode: 'plain', debug: true }))).toBeUndefined();
  });

  test('ends its ticking when it is stopped, and says nothing afterwards', async () => {
    const { progress, text, ticking } = bench({ mode: 'plain' });
    expect(ticking()).toBe(1);
    await progress.stop();
    await progress.stop();
    tell(progress, STORY);
    progress.http(REQUEST);
    expect(ticking()).toBe(0);
    expect(text()).toBe('');
  });
});

test('an image that is placed in several repositories is told of each with its name', async () => {
  const { progress, text } = bench({ mode: 'plain' });
  const image = digest('one');
  for (const repository of ['ghcr.io/acme/app', 'docker.io/acme/app']) {
    progress.emit({ kind: 'manifest.done', repository, digest: image, manifest: 'pushed' });
  }
  await progress.stop();
  expect(text().match(/pushed in \S+/g)).toEqual(['pushed in ghcr.io/acme/app', 'pushed in docker.io/acme/app']);
});

describe('a log of several lists', () => {
  const OTHER = 'ghcr.io/acme/app:2';
  const events: typeof STORY = [
    { kind: 'run.start', lists: 300 },
    ...STORY,
    { kind: 'list.done', target: 'ghcr.io/acme/app:1', digest: digest('one') },
    ...REST,
    { kind: 'list.done', target: OTHER, error: 'may not push to "::error::" ghcr.io/acme/app' },
  ];

  test('has one line a list, warnings, and the counts of all every ten seconds', async () => {
    const { progress, text, pass } = bench({ mode: 'plain' });
    tell(progress, events.slice(0, -1));
    pass(10_000);
    tell(progress, events.slice(-1));
    pass(10_000);
    await progress.stop();
    expectGolden('progress-lists.plain', text());
    expect(danger(text())).toBeUndefined();
  });

  test('stays a line for each of hundreds', async () => {
    const { progress, text } = bench({ mode: 'plain' });
    progress.emit({ kind: 'run.start', lists: 300 });
    for (let at = 1; at <= 300; at += 1) {
      tell(progress, STORY);
      progress.emit({ kind: 'list.done', target: `ghcr.io/acme/app:${at}`, digest: digest(String(at)) });
    }
    const lines = text().trimEnd().split('\n');
    expect(lines).toHaveLength(301);
    expect(lines.at(-1)).toBe(`300 of 300 lists done: ghcr.io/acme/app:300 ${digest('300')}`);
  });
});

describe('events as JSON', () => {
  test('are one a line, a warning once', async () => {
    const lines = (await tellAll({ mode: 'json' })).trimEnd().split('\n');
    const told: unknown[] = lines.map((line) => JSON.parse(line));
    const [, ...rest] = REST.filter((event) => event.kind !== 'warning');
    expect(told).toEqual(expect.arrayContaining([...STORY, ...rest, RETRY]));
    expect(told.filter((event) => (event as { kind: string }).kind === 'warning')).toHaveLength(1);
    expect(told).not.toContainEqual(expect.objectContaining({ kind: 'request' }));
    expect(danger(lines.join('\n'))).toBeUndefined();
  });

  test('tell of the bytes of a blob once a second', () => {
    const { progress, text, pass } = bench({ mode: 'json' });
    for (let sent = 0; sent < 100; sent += 1) {
      progress.emit({ kind: 'blob.progress', digest: digest('l1'), size: 100, sent });
      pass(100);
    }
    expect(text().trimEnd().split('\n')).toHaveLength(10);
  });

  test('hold requests with --debug', async () => {
    expect(await tellAll({ mode: 'json', debug: true })).toContain('"kind":"request"');
  });

  test.each(['plain', 'json'] as const)('keep secrets of URLs to themselves, as a log does: %s', async (mode) => {
    const { progress, text } = bench({ mode, debug: true });
    progress.http(REQUEST);
    progress.emit({ kind: 'warning', text: 'moved to https://cdn.test/b?X-Amz-Signature=s3cret' });
    expect(text()).toContain('https://***@host.test/v2/a/blobs/uploads/1');
    expect(text()).toContain('https://cdn.test/b?***');
    expect(text()).not.toMatch(/s3cret|pa55/);
  });
});

describe('silence', () => {
  test('without progress still has warnings', async () => {
    expect(await tellAll({ mode: 'none' })).toBe('warning: the registry says: "::error::this repository moves soon"\n');
  });

  test.each(['auto', 'plain', 'json', 'none'] as const)('with --quiet is complete: %s', async (mode) => {
    expect(await tellAll({ mode, quiet: true, debug: true })).toBe('');
  });
});

describe('the mode', () => {
  const terminal = Object.assign(new Writable(), { isTTY: true, columns: 80 });
  const base = { theme: PLAIN, ci: false, quiet: false, debug: false, now: () => 0, every: () => () => undefined };
  test.each([
    [{ mode: 'auto', stream: terminal }, 'tty'],
    [{ mode: 'auto', stream: terminal, ci: true }, 'plain'],
    [{ mode: 'auto', stream: terminal, debug: true }, 'plain'],
    [{ mode: 'auto', stream: new Writable() }, 'plain'],
    [{ mode: 'auto', stream: Object.assign(new Writable(), { isTTY: true, columns: 0 }) }, 'plain'],
    [{ mode: 'tty', stream: terminal, ci: true }, 'tty'],
    [{ mode: 'tty', stream: new Writable() }, 'plain'],
    [{ mode: 'plain', stream: terminal }, 'plain'],
    [{ mode: 'json', stream: terminal, debug: true }, 'json'],
    [{ mode: 'auto', stream: terminal, quiet: true }, 'none'],
  ] as const)('of %j is %s', (options, mode) => {
    expect(effectiveMode({ ...base, ...options })).toBe(mode);
  });
});

test('a drawing that fails is given up and told, and the run goes on', async () => {
  // What a terminal has beyond `write` is missing.
  const written: string[] = [];
  const write = (text: string) => written.push(text) > 0;
  const stream = Object.assign(new Writable(), { isTTY: true, columns: 80, rows: 24, write });
  const { progress, pass } = bench({ mode: 'tty', stream });
  tell(progress, STORY.slice(0, 2));
  pass(1_000);
  await progress.stop();
  expect(written.join('')).toMatch(/warning: progress is not drawn: TypeError: .* is not a function\n$/);
});

test('a blob that is brought a second time counts once, as it came last, with all its bytes', () => {
  const { progress, text, pass } = bench({ mode: 'plain' });
  const blob = { kind: 'blob.done', digest: digest('b'), size: 1000 } as const;
  progress.emit({ kind: 'plan', target: 'a.test/b', images: [], blobs: 2, bytes: 2000 });
  progress.emit({ ...blob, how: 'mounted', bytesSent: 0 });
  progress.emit({ ...blob, how: 'copied', bytesSent: 1000 });
  progress.emit({ ...blob, digest: digest('c'), how: 'mounted', bytesSent: 0 });
  pass(10_000);
  expect(text()).toContain('blobs 2 of 2 · mounted 1 · copied 1 (1.0 kB)');
});

test('tags that are done are remembered for a failure to tell', () => {
  const { progress } = bench({ quiet: true });
  tell(progress, [...STORY, ...REST]);
  expect(progress.tags().map((tag) => tag.action)).toEqual(['updated']);
});

const FAILED: Extract<HttpEvent, { kind: 'request' }> = {
  kind: 'request',
  method: 'GET',
  url: 'https://host.test/v2/?never=shown',
  status: undefined,
  failure: 'ECONNRESET',
  milliseconds: 12.4,
  bytesSent: 0,
  send: 1,
};

test('takes what the transport tells', () => {
  const { progress, text } = bench({ debug: true });
  const onEvent: (event: Extract<HttpEvent, { kind: 'request' | 'retry' }>) => void = progress.http;
  onEvent({ ...FAILED, send: 2 });
  expect(text()).toBe('GET https://host.test/v2/ failed (ECONNRESET) 12 ms 0 B try 2\n');
});
