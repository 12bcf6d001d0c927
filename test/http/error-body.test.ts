import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { ERROR_BODY_LIMIT, oneLine, parseErrorBody, readErrorBody } from '../../src/http/error-body.ts';
import { ask, client, closeAll, serve } from './fixture.ts';

afterEach(closeAll);

const parse = (text: string, type = 'application/json') => parseErrorBody(Buffer.from(text), { 'content-type': type });

describe('what an error body says', () => {
  it.each([
    [
      'the spec’s errors',
      '{"errors":[{"code":"NAME_UNKNOWN","message":"repository name not known","detail":{"name":"a/b"}}]}',
      { code: 'NAME_UNKNOWN', codes: ['NAME_UNKNOWN'], message: 'repository name not known', detail: 'name: a/b' },
    ],
    [
      'several of them',
      '{"errors":[{"code":"DENIED","message":"no"},{"code":"UNKNOWN"}]}',
      { code: 'DENIED', codes: ['DENIED', 'UNKNOWN'], message: 'no', detail: undefined },
    ],
    ['a text as detail', '{"errors":[{"code":"X","detail":"why"}]}', { code: 'X', message: undefined, detail: 'why' }],
    ['an OAuth error', '{"error":"invalid_grant","error_description":"token expired"}', { message: 'token expired' }],
    [
      'Docker Hub’s token server',
      '{"details":"incorrect username or password"}',
      { message: 'incorrect username or password' },
    ],
    ['a framework', '{"status":404,"message":"not here"}', { message: 'not here' }],
    ['JSON that says nothing we know', '{"a":1}', { message: '{"a":1}' }],
    ['broken JSON', '{"errors":[{"code', { message: '{"errors":[{"code' }],
    ['errors that are none', '{"errors":[1,null,"x"]}', { code: undefined, codes: [], message: undefined }],
    ['nothing', '', { code: undefined, message: undefined }],
  ])('is found in %s', (_name, text, expected) => {
    expect(parse(text)).toMatchObject(expected);
  });

  it('is the title of a page, or its text', () => {
    const page = '<html>\n<head><title> 413 Request Entity\nToo Large </title></head><body>x</body></html>';
    expect(parse(page, 'text/html').message).toBe('413 Request Entity Too Large');
    expect(parse('<!doctype html><p>Go <b>away</b></p>', 'text/plain').message).toBe('Go away');
    expect(parse('<title>', 'text/html').message).toBeUndefined();
  });

  it('is the first line of a text', () => {
    expect(parse('toomanyrequests: You have reached your limit\nSee https://docs', 'text/plain').message).toBe(
      'toomanyrequests: You have reached your limit',
    );
  });

  it('is nothing when it came compressed', () => {
    const headers = { 'content-encoding': 'gzip' };
    expect(parseErrorBody(Buffer.from('{"errors":[{"code":"X"}]}'), headers).code).toBeUndefined();
  });

  it('takes only words for a code', () => {
    expect(parse('{"errors":[{"code":"A B"}]}').code).toBeUndefined();
    expect(parse('{"errors":[{"code":"::error::x"}]}').code).toBeUndefined();
    expect(parse('{"errors":[{"code":7}]}').code).toBeUndefined();
  });
});

describe('text of strangers', () => {
  it.each([
    ['a\nb\r\nc\td', 'a b c d'],
    ['\u001b[31mred\u001b[0m', 'red'],
    ['\u009b31mred', 'red'],
    ['a\u001bb\u0085c', 'abc'],
    ['::error::owned', '|::error::owned'],
    ['  ::add-mask::x', '|::add-mask::x'],
    ['a ##[command]x', 'a #|#[command]x'],
    ['abc\u202edcba', 'abcdcba'],
    ['zero\u200bwidth', 'zerowidth'],
    ['\ud800', ''],
  ])('%j becomes %j', (text, line) => {
    expect(oneLine(text)).toBe(line);
  });

  it('is one short line without controls or commands, whatever it was', () => {
    const nasty = fc.constantFrom('::', '##[', '\n', '\r', '\u001b', '\u202e', '\u0085', ' ', 'x');
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.array(nasty).map((parts) => parts.join('')),
    );
    fc.assert(
      fc.property(text, (value) => {
        const line = oneLine(value, 50);
        expect(line.length).toBeLessThanOrEqual(50);
        expect(line).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}\n\r]/u);
        expect(line.trimStart().startsWith('::')).toBe(false);
        expect(line).not.toContain('##[');
      }),
      { numRuns: 2000 },
    );
  });

  it('is read quickly, however hostile', () => {
    for (const text of [
      '<'.repeat(ERROR_BODY_LIMIT),
      '<title'.repeat(10_000),
      '{'.repeat(ERROR_BODY_LIMIT),
      ' '.repeat(ERROR_BODY_LIMIT),
    ]) {
      const start = performance.now();
      parse(text, 'text/html');
      parse(text);
      expect(performance.now() - start).toBeLessThan(500);
    }
  });
});

describe('reading it', () => {
  it('stops at 64 KiB and closes the connection', async () => {
    const server = await serve((_request, response) => {
      response.writeHead(500, { 'content-type': 'text/plain' });
      response.write(`first line\n${'x'.repeat(ERROR_BODY_LIMIT)}`);
    });
    const response = await ask(client({ retries: 0 }), server.host, '/');
    expect((await readErrorBody(response)).message).toBe('first line');
    await expect.poll(() => server.open()).toBe(0);
  });

  it('makes do with half of it', async () => {
    const server = await serve((request, response) => {
      response.writeHead(403, { 'content-length': '1000', 'content-type': 'text/plain' });
      response.write('denied\nbecause');
      setTimeout(() => request.socket.destroy(), 20);
    });
    expect((await readErrorBody(await ask(client(), server.host, '/'))).message).toBe('denied');
  });
});
