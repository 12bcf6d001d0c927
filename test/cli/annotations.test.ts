import { describe, expect, it } from 'vitest';
import { annotations } from '../../src/cli/annotations.ts';
import { PublishError } from '../../src/errors.ts';

describe('annotations', () => {
  it.each([
    [['a=b'], { a: 'b' }],
    [['a=b', 'a=c'], { a: 'c' }],
    [['a=b=c', 'e='], { a: 'b=c', e: '' }],
    [['index:a=b'], { a: 'b' }],
    [['indexed:a=b'], { 'indexed:a': 'b' }],
    [['org.example/a:b=index:c=d'], { 'org.example/a:b': 'index:c=d' }],
    [[], {}],
  ])('%j of an index', (texts, expected) => {
    expect(annotations(texts, 'index')).toEqual(expected);
  });

  it('of an entry may be named so', () => {
    expect(annotations(['descriptor:a=b', 'c=d'], 'descriptor')).toEqual({ a: 'b', c: 'd' });
  });

  it('keep a key that is a name of JavaScript', () => {
    expect(Object.keys(annotations(['__proto__=x'], 'index'))).toEqual(['__proto__']);
  });

  it.each([
    ['a', 'index', '--annotation must be KEY=VALUE'],
    ['=b', 'index', '--annotation must be KEY=VALUE'],
    ['', 'index', '--annotation must be KEY=VALUE'],
    ['index:=b', 'index', '--annotation must be KEY=VALUE'],
    ['manifest:a=b', 'index', 'cannot annotate the manifest'],
    ['manifest-descriptor[linux/amd64]:a=b', 'index', 'cannot annotate the manifest-descriptor'],
    ['index:a=b', 'descriptor', 'cannot annotate the index'],
  ] as const)('%j of the %s is refused: %s', (text, place, message) => {
    expect(() => annotations([text], place)).toThrow(PublishError);
    expect(() => annotations([text], place)).toThrow(message);
  });
});
