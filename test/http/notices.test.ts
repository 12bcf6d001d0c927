import { afterEach, describe, expect, it } from 'vitest';
import type { HttpEvent } from '../../src/http/message.ts';
import { createNotices } from '../../src/http/notices.ts';
import { ask, client, closeAll, serve } from './fixture.ts';

afterEach(closeAll);

function listening() {
  const events: HttpEvent[] = [];
  const notices = createNotices((event) => events.push(event));
  return { events, read: (headers: Record<string, string>, host = 'r.test') => notices.read(host, headers) };
}

describe('a Warning', () => {
  it('is told once for each text and host', () => {
    const { events, read } = listening();
    for (let count = 0; count < 3; count += 1) read({ warning: '299 - "old tag"' });
    read({ warning: '299 - "old tag", 299 - "a \\"quoted\\", text"' });
    read({ warning: '299 - "old tag"' }, 'other.test');
    expect(events).toEqual([
      { kind: 'warning', host: 'r.test', text: 'old tag' },
      { kind: 'warning', host: 'r.test', text: 'a "quoted", text' },
      { kind: 'warning', host: 'other.test', text: 'old tag' },
    ]);
  });

  it.each(['110 cache "Response is stale"', '299 proxy "x"', '299 - ""', 'x299 - "x"', 'nonsense', ''])(
    'is passed over when it is none of a registry: %s',
    (warning) => {
      const { events, read } = listening();
      read({ warning });
      expect(events).toEqual([]);
    },
  );

  it('is fit to be printed, and short', () => {
    const { events, read } = listening();
    read({ warning: '299 - "\u001b[31m::error::x\u202e"' });
    read({ warning: `299 - "${'y'.repeat(5000)}"` });
    read({ warning: `299 - "${'z'.repeat(4000)}"` });
    expect(events.map((event) => event.kind === 'warning' && event.text.length < 400)).toEqual([true, true]);
    expect(events[0]).toMatchObject({ text: '|::error::x' });
  });

  it('of a registry that always says something new is not listened to for ever', () => {
    const { events, read } = listening();
    for (let count = 0; count < 1000; count += 1) read({ warning: `299 - "number ${count}"` });
    expect(events).toHaveLength(20);
  });

  it('arrives from an answer, and not from a place that the registry only named', async () => {
    const other = await serve((_request, response) => response.setHeader('warning', '299 - "other"').end());
    const server = await serve((_request, response) => {
      response.writeHead(307, { location: `http://${other.host}/`, warning: '299 - "own"' }).end();
    });
    const http = client();
    for (let count = 0; count < 2; count += 1) await (await ask(http, server.host, '/')).discard();
    const warnings = http.events.filter(({ kind }) => kind === 'warning');
    expect(warnings).toEqual([{ kind: 'warning', host: server.host, text: 'own' }]);
  });
});

describe('what is left of a limit', () => {
  const of = (remaining: number, limit = 100) => ({
    'ratelimit-limit': `${limit};w=21600`,
    'ratelimit-remaining': `${remaining};w=21600`,
    'docker-ratelimit-source': '192.0.2.1',
  });

  it('is told when it is low, once for each halving', () => {
    const { events, read } = listening();
    for (let remaining = 100; remaining >= 0; remaining -= 1) for (const _ of [1, 2]) read(of(remaining));
    expect(events.map((event) => event.kind === 'rate' && event.remaining)).toEqual([10, 5, 2, 1, 0]);
    expect(events[0]).toEqual({
      kind: 'rate',
      host: 'r.test',
      remaining: 10,
      limit: 100,
      windowSeconds: 21_600,
      source: '192.0.2.1',
    });
  });

  it('is told anew after it has been filled up', () => {
    const { events, read } = listening();
    for (const remaining of [3, 80, 4]) read(of(remaining));
    expect(events).toHaveLength(2);
  });

  it.each([
    [{ 'ratelimit-remaining': '3' }],
    [{ 'ratelimit-limit': 'x', 'ratelimit-remaining': '3' }],
    [{ 'ratelimit-limit': '100', 'ratelimit-remaining': '' }],
    [{ 'ratelimit-limit': '100' }],
  ])('is not guessed at: %j', (headers) => {
    const { events, read } = listening();
    read(headers as Record<string, string>);
    expect(events).toEqual([]);
  });

  it('may come without a window', () => {
    const { events, read } = listening();
    read({ 'ratelimit-limit': '1000', 'ratelimit-remaining': '100' });
    expect(events).toEqual([{ kind: 'rate', host: 'r.test', remaining: 100, limit: 1000 }]);
  });
});
