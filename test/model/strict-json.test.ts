import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  ExactNumber,
  exactJson,
  foldedKeys,
  isJsonObject,
  readJsonObject,
  refuseCaseVariants,
} from '../../src/model/strict-json.ts';
import { failure } from './failure.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const read = (text: string): unknown => readJsonObject(bytes(text), 'reg.example.test/x:1');

describe('a strict JSON object', () => {
  it.each([
    ['{}'],
    ['{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]}'],
    [' \t\r\n{ "a" : "b" , "c" : [ "a" , "a" , "a" ] }\r\n\n'],
    ['{"a":"\\"b\\":1","b":"\\\\","c":1}'],
    ['{"a":"{[\\"a\\":","A":1}'],
    [`${'{"a":'.repeat(63)}[]${'}'.repeat(63)}`],
    ['{"a\\u0062":1,"a":2,"\\u00e9":3,"é ":4}'],
  ])('%s is what JSON.parse makes of it', (text) => {
    expect(read(text)).toEqual(JSON.parse(text));
  });

  it.each([
    ['', 'not JSON'],
    ['null', 'not a JSON object'],
    ['[]', 'not a JSON object'],
    ['"{}"', 'not a JSON object'],
    ['{', 'not JSON'],
    ['{"a":1}x', 'not JSON'],
    ["{'a':1}", 'not JSON'],
    ['{"a":1,}', 'not JSON'],
    ['{"a":NaN}', 'not JSON'],
    ['{"a', 'not JSON'],
    ['{"a\\', 'not JSON'],
    ['{"\\u00":1}', 'not JSON'],
    [']]]}}}{{[', 'not JSON'],
    ['\ufeff{}', 'byte order mark'],
    ['{"a":1,"a":1}', 'key "a" twice'],
    ['{"b":[{"x":{"a":1,"b":{},"a":1}}]}', 'key "a" twice'],
    ['{"a" :1,"\\u0061"\n:2}', 'key "a" twice'],
    ['{"":1,"":1}', 'key "" twice'],
    ['{"__proto__":1,"__proto__":2}', 'key "__proto__" twice'],
    [`${'{"a":'.repeat(64)}[]${'}'.repeat(64)}`, 'deeper than 64'],
    [`{"a":${'['.repeat(2_000_000)}`, 'deeper than 64'],
  ])('%.40s is refused: %s', (text, words) => {
    const error = failure(() => read(text));
    expect(error.code).toBe('MANIFEST_INVALID');
    expect(error.exitCode).toBe(6);
    expect(error.message).toContain('reg.example.test/x:1: ');
    expect(error.message).toContain(words);
  });

  it('is UTF-8', () => {
    const broken = new Uint8Array([...bytes('{"a":"'), 0xff, ...bytes('"}')]);
    expect(failure(() => readJsonObject(broken, 'x')).message).toBe('x: not UTF-8');
    const utf16 = new Uint8Array(Buffer.from('\ufeff{}', 'utf16le'));
    expect(failure(() => readJsonObject(utf16, 'x')).message).toBe('x: not UTF-8');
  });

  it('keeps __proto__ as a key that changes nothing', () => {
    const object = readJsonObject(bytes('{"__proto__":{"size":1},"constructor":2}'), 'x');
    expect(object['size']).toBeUndefined();
    expect(Object.keys(object)).toEqual(['__proto__', 'constructor']);
    expect(({} as Record<string, unknown>)['size']).toBeUndefined();
  });

  it('messages show keys escaped', () => {
    expect(failure(() => read('{"\\u001b[31m":1,"\\u001b[31m":2}')).message).toContain('key "\\u001b[31m" twice');
  });

  it('takes time in proportion to its length, 1 MiB of the worst within a second and a half', () => {
    const size = 1024 * 1024;
    const fill = (part: string, head = '{"a":[', tail = ']}'): string =>
      head +
      Array(Math.floor(size / (part.length + 1)))
        .fill(part)
        .join(',') +
      tail;
    const worst = [
      fill('{"a":1}'),
      fill('{}'),
      fill('""'),
      `{"a":"${'\\\\'.repeat(size / 2)}"}`,
      `{"a":"${'\\"'.repeat(size / 2)}"}`,
      `{"a"${' '.repeat(size)}:1}`,
      `{${Array.from({ length: 75_000 }, (_, index) => `"k${index}":1`).join(',')}}`,
      `{${Array.from({ length: 100_000 }, (_, index) => `"${index}":1`).join(',')}}`,
    ];
    for (const text of worst) {
      const start = performance.now();
      read(text);
      expect(performance.now() - start).toBeLessThan(1500);
    }
  });

  it('agrees with JSON.parse on every document without doubled keys', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 10 })),
        fc.constantFrom('', ' ', '\n\t'),
        (value, space) => {
          const text = JSON.stringify(value, null, space);
          expect(read(text)).toEqual(JSON.parse(text));
        },
      ),
    );
  });

  it('refuses every object with a key doubled', () => {
    const nested = fc.array(fc.constantFrom('{"k":', '[', '[1,'), { maxLength: 30 });
    fc.assert(
      fc.property(fc.string({ minLength: 1 }), nested, (key, opens) => {
        const escaped = JSON.stringify(key);
        const spelled = `"${[...key].map((char) => [...Array(char.length).keys()].map((at) => `\\u${char.charCodeAt(at).toString(16).padStart(4, '0')}`).join('')).join('')}"`;
        const doubled = `{${escaped}:1,"${'other'.repeat(9)}":2,${spelled}:3}`;
        const closes = opens.map((open) => (open.startsWith('{') ? '}' : ']')).reverse();
        expect(failure(() => read(`{"top":${opens.join('')}${doubled}${closes.join('')}}`)).message).toContain('twice');
      }),
    );
  });
});

describe('keys that differ only in case', () => {
  const keys = foldedKeys(['mediaType', 'layers', 'os.version']);
  const check = (...names: readonly string[]) =>
    refuseCaseVariants(Object.fromEntries(names.map((name) => [name, 1])), keys, 'x');

  it.each(['MEDIATYPE', 'mediatype', 'Layers', 'OS.Version', 'layer\u017f'])('%s is refused', (key) => {
    expect(failure(() => check(key)).message).toContain('only in case');
    expect(failure(() => check('mediaType', key)).code).toBe('MANIFEST_INVALID');
  });

  it('unknown keys may be what they like', () => {
    expect(() => check('mediaType', 'layers', 'Data', 'data', 'mediaTypes', '__proto__')).not.toThrow();
  });
});

describe('numbers', () => {
  const kept = ['1e400', '12345678901234567890', '1.0', '-0', '1E5', '0.10', '1e21', '9007199254740993'];
  const own = ['0', '-1', '1.5', '1e+21', '1e-7', '9007199254740991'];

  it('that JavaScript writes otherwise keep their text, wherever they stand', () => {
    const text = `{"b":[${kept.join(',')}],"a":{"x":{"n":1.0,"s":"1.0","t":[true,false,null,{},[]]}},"__proto__":2.0}`;
    expect(exactJson(read(text))).toBe(text);
  });

  it.each(own)('%s is a plain number', (number) => {
    expect(read(`{"n":${number}}`)).toEqual({ n: Number(number) });
  });

  it('are exact among white space, and no objects', () => {
    const value = read('{ "n" :\n1.0\t, "m" : [ 1.0 , 2 ] }') as { n: unknown; m: unknown[] };
    expect(value.n).toEqual(new ExactNumber('1.0'));
    expect(value.m).toEqual([new ExactNumber('1.0'), 2]);
    expect(isJsonObject(value.n)).toBe(false);
    expect(JSON.stringify(value)).toBe('{"n":1,"m":[1,2]}');
  });

  it('any JSON with one of them is otherwise what JSON.parse makes of it', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 4 }), { maxKeys: 4 }),
        fc.constantFrom(2, undefined),
        (object, indent) => {
          const text = JSON.stringify({ ...object, 'exact number': 0 }, undefined, indent);
          const value = read(text.replace(/("exact number": ?)0/, '$11.0'));
          expect(JSON.parse(JSON.stringify(value))).toEqual({ ...JSON.parse(text), 'exact number': 1 });
        },
      ),
    );
  });
});
