import { createSecrets } from '../../../src/auth/secrets.ts';
import { type ErrorBody, oneLine, parseErrorBody } from '../../../src/http/error-body.ts';
import { Secret } from '../../../src/http/origin.ts';
import { textWidth, untrusted } from '../../../src/ui/text.ts';
import { bytesOf, must, mustBeShowable, type Target } from '../target.ts';

const ERRORS = '{"errors":[{"code":"DENIED","message":"requested access is denied","detail":{"Type":"repository"}}]}';

const errorBody: Target = {
  name: 'error body',
  corpus: [
    ERRORS,
    '{"errors":[{"code":"TOOMANYREQUESTS","message":"::error::x","detail":"a\\u001b[2Jb"},{"code":"X Y"},null,3]}',
    '{"error":"invalid_grant","error_description":"no","details":[1]}',
    '{"detail":"Incorrect username"}',
    '<html><head><title>502 Bad Gateway</title></head><body>x</body></html>',
    '<!DOCTYPE html><p>gone</p>',
    'You have reached your pull rate limit.\nsee https://x',
    '{"errors":{}}',
    '',
  ],
  words: ['"errors":[', '{"code":"', '"message":"', '"detail":', '<title>', '</title>', '<', '>', '":null'],
  shapes: (length) => [
    '<title'.repeat(length / 6),
    `<title>${'a'.repeat(length)}`,
    `{"errors":[${'{},'.repeat(length / 3)}{}]}`,
    `{"errors":[{"detail":{${'"a":1,'.repeat(length / 6)}"b":2}}]}`,
    `<${' '.repeat(length)}`,
    '\x1b]'.repeat(length / 2),
    '\x1b['.repeat(length / 2),
    '\x9b'.repeat(length),
  ],
  check(text) {
    let found: ErrorBody | undefined;
    for (const type of ['application/json', 'text/html', '']) {
      found = parseErrorBody(bytesOf(text), { 'content-type': type });
      for (const part of [found.message, found.detail]) {
        mustBeShowable(part, 'an error answer');
        must((part?.length ?? 0) <= 300, 'too long', part);
      }
      must(
        found.codes.every((code) => /^[\w.-]{1,64}$/.test(code)),
        'a code that is none',
        found.codes,
      );
      must(found.code === found.codes[0], 'another code');
    }
    mustBeShowable(oneLine(text), 'one line');
    return found?.message !== undefined;
  },
};

const shown: Target = {
  name: 'untrusted text',
  corpus: [
    'denied: requested access to the resource is denied',
    'see https://user:password@x.test/a?token=secret#y and Bearer eyJhbGciOiJIUzI1NiJ9.e30.x',
    '::error file=a::b',
    '##[command]x ##vso[task.setvariable]y ##teamcity[z]',
    'a\u0301\u0301\u0301\u0301\u0301 \u202eevil \ud83d\ude00 \u200b::add-mask::x',
    '\x1b]8;;http://x\x07link\x1b]8;;\x07',
    '[::1]:5000 ::1',
  ],
  words: [
    '::',
    '##',
    '[',
    'Bearer ',
    'Basic ',
    'https://',
    '@',
    '?',
    '\u0301',
    '\u3000',
    '\u200b',
    ' ::x::',
    '#\u200b#[',
  ],
  shapes: (length) => [
    'Bearer '.repeat(length / 7),
    `Bearer ${'a'.repeat(length)}`,
    `//${'a'.repeat(length)}`,
    '//a'.repeat(length / 3),
    `https://${'a'.repeat(length)}`,
    'https://'.repeat(length / 8),
    `##${'a'.repeat(length)}`,
    '##'.repeat(length / 2),
    '##a'.repeat(length / 3),
    '\u0301'.repeat(length),
    '\x1b]'.repeat(length / 2),
    'Bearer a.'.repeat(length / 9),
  ],
  check(text) {
    for (const limit of [600, 40, 7]) {
      const line = untrusted(text, limit);
      must(!/[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/u.test(line), 'a character that is obeyed or not seen', line);
      must(textWidth(line) <= limit, 'wider than it may be', line);
      // As the runners look: GitHub at the start of the trimmed line, its old version and others anywhere.
      must(!/(?:^|\s)::[^\d\s]/u.test(line) && !/##\w*\[/.test(line), 'a command of a runner', line);
      must(!/\/\/[^\s/@]+:[^\s/@*]+@/.test(line), 'a login in an address', line);
    }
    return true;
  },
};

const secrets = createSecrets();
const PASSWORD = 'kX9-pQ2/vL7+rT4==';
secrets.addLogin({ kind: 'basic', username: 'user', password: new Secret(PASSWORD) });
secrets.add('eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl');

const concealed: Target = {
  name: 'concealed text',
  corpus: [
    `password ${PASSWORD} told`,
    `Basic ${Buffer.from(`user:${PASSWORD}`).toString('base64')}`,
    encodeURIComponent(PASSWORD),
    JSON.stringify(PASSWORD),
    'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl',
    'eyJhbGciOiJIUzI1NiJ9.eyJzdWI',
    'nothing',
  ],
  words: [PASSWORD, 'eyJhbGciOiJIUzI1NiJ9', 'user:', 'Basic ', '***', `sha256:${'0'.repeat(64)}`],
  check(text) {
    const hidden = secrets.conceal(text);
    must(!hidden.includes(PASSWORD) && !hidden.includes(encodeURIComponent(PASSWORD)), 'a password is told', hidden);
    return hidden !== text;
  },
};

export const TEXT_TARGETS: readonly Target[] = [errorBody, shown, concealed];
