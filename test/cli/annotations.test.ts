import { describe, expect, it } from 'vitest';
import { annotations, placedAnnotations } from '../../src/cli/annotations.ts';
import { PublishError } from '../../src/errors.ts';

describe('annotations', () => {
  it.each([
    [['a=b'], { a: 'b' }],
    [['a=b', 'a=c'], { a: 'c' }],
    [['a=b=c', 'e='], { a: 'b=c', e: '' }],
    [['index:a=b'], { a: 'b' }],
    [['index.ed:a=b'], { 'index.ed:a': 'b' }],
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

describe('annotations with places', () => {
  const arm = { os: 'linux', architecture: 'arm', variant: 'v7' };

  it.each([
    [['a=b'], { index: { a: 'b' }, entries: [] }],
    [['index:a=b', 'a=c'], { index: { a: 'c' }, entries: [] }],
    [['descriptor:a=b'], { index: {}, entries: [{ annotations: { a: 'b' } }] }],
    [
      ['manifest-descriptor[linux/arm/v7]:a=b=c'],
      { index: {}, entries: [{ platform: arm, annotations: { a: 'b=c' } }] },
    ],
    [['index,manifest-descriptor:a='], { index: { a: '' }, entries: [{ annotations: { a: '' } }] }],
    [['index.ed:a=b'], { index: { 'index.ed:a': 'b' }, entries: [] }],
  ])('%j', (texts, expected) => {
    expect(placedAnnotations(texts, {})).toEqual(expected);
  });

  it.each([
    ['manifest:a=b', 'cannot annotate the manifest'],
    ['descriptor[linux/amd64:a.b=c', 'no place "descriptor[linux/amd64"'],
    [':a.b=c', 'no place ""'],
    ['descriptors:a.b=c', 'no place "descriptors"'],
    ['index-descriptor:a=b', 'cannot annotate the index-descriptor'],
    ['index,other:a=b', 'cannot annotate the other'],
    ['index[linux/amd64]:a=b', 'of an index has no platform'],
    ['descriptor[]:a=b', 'platform'],
    ['descriptor:a', '--annotation must be KEY=VALUE'],
  ])('%j is refused', (text, message) => {
    expect(() => placedAnnotations([text], {})).toThrow(PublishError);
    expect(() => placedAnnotations([text], {})).toThrow(message);
  });

  it('keep a key that is a name of JavaScript', () => {
    const { index, entries } = placedAnnotations(['index,descriptor:__proto__=x'], {});
    expect(Object.keys(index)).toEqual(['__proto__']);
    expect(Object.keys(entries[0]?.annotations ?? {})).toEqual(['__proto__']);
  });

  it('take the time of creation from SOURCE_DATE_EPOCH, and no other value from anywhere', () => {
    const created = 'org.opencontainers.image.created';
    const env = { SOURCE_DATE_EPOCH: '0', a: 'x' };
    expect(placedAnnotations([created], env).index).toEqual({ [created]: '1970-01-01T00:00:00Z' });
    expect(placedAnnotations([`descriptor:${created}`], { SOURCE_DATE_EPOCH: '253402300799' }).entries).toEqual([
      { annotations: { [created]: '9999-12-31T23:59:59Z' } },
    ]);
    expect(placedAnnotations([`${created}=`], env).index).toEqual({ [created]: '' });
    expect(() => placedAnnotations(['a'], env)).toThrow('KEY=VALUE');
  });
});
