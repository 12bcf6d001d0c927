import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { failureOf, read, shown } from './reading.ts';

const word = fc.stringMatching(/^[a-z][a-z0-9]{0,8}$/);
const tag = fc.stringMatching(/^\w[\w.-]{0,12}$/);
const platform = fc.constantFrom('linux/amd64', 'linux/arm/v7', 'linux/386', 'windows/amd64:10.0.17763.2300');
const repository = fc.tuple(word, word).map((words) => `reg.example.test/${words.join('/')}`);

/** U+FFFD is what is left of a file in another encoding, and refused. */
const isRead = (text: string) => !/[\0\ufffd]/.test(text);

/** Texts of any kind: what YAML would take for numbers, dates and words among them. */
const value = fc.oneof(
  fc.constantFrom('3.10', '1e3', '010', 'true', 'null', '~', '', '2026-11-30', '- x', '# x', 'a: b', "it's", '\t'),
  fc.string({ unit: 'grapheme', maxLength: 20 }).filter(isRead),
);
const annotations = fc
  .dictionary(fc.string({ minLength: 1, maxLength: 10 }), value, { maxKeys: 4 })
  .map((map) =>
    Object.fromEntries(
      Object.entries(map).filter(([key]) => !['__proto__', 'constructor', 'prototype', '<<'].includes(key)),
    ),
  );
const list = fc.record({
  tag,
  repository,
  sources: fc.array(fc.tuple(platform, repository, tag), { minLength: 1, maxLength: 5 }),
  annotations,
});
const lists = fc.uniqueArray(list, { selector: (one) => `${one.repository}:${one.tag}`, minLength: 1, maxLength: 6 });

const escaped = (text: string) => text.replaceAll('${', '$$${');

describe('a spec file', () => {
  it('gives back what was written into it, as YAML and as JSON, in both formats', () => {
    fc.assert(
      fc.property(lists, fc.boolean(), (written, theirs) => {
        const documents = written.map(({ sources, annotations, ...target }) => {
          const notes = Object.fromEntries(Object.entries(annotations).map(([key, text]) => [key, escaped(text)]));
          const name = `${target.repository}:${target.tag}`;
          if (!theirs) {
            const refs = sources.map(([wanted, where, version]) => `${wanted}=${where}:${version}`);
            return { target: name, annotations: notes, sources: refs };
          }
          const manifests = sources.map(([wanted, where, version]) => {
            const [head = '', osversion] = wanted.split(':');
            const [os, architecture, variant] = head.split('/');
            return { image: `${where}:${version}`, platform: { os, architecture, variant, osversion } };
          });
          return { image: name, annotations: notes, manifests };
        });
        const yaml = documents.map((document) => stringify(document)).join('---\n');
        const texts = theirs
          ? [['x.yaml', yaml]]
          : [
              ['x.yaml', yaml],
              ['x.json', JSON.stringify({ lists: documents })],
              ['y.yaml', JSON.stringify({ lists: documents })],
            ];
        for (const [name = '', text = ''] of texts) {
          const requests = read(text, { name });
          expect(
            requests.map((request) =>
              request.targets.map((target) => `${target.host}/${target.repository}:${target.tag}`),
            ),
          ).toEqual(written.map((one) => [`${one.repository}:${one.tag}`]));
          expect(requests.map((request) => request.annotations)).toEqual(written.map((one) => one.annotations));
          expect(requests.map(({ sources }) => sources.map(shown))).toEqual(
            written.map(({ sources }) => sources.map(([wanted, where, version]) => `${wanted}=${where}:${version}`)),
          );
        }
      }),
      { numRuns: 200 },
    );
  });

  it('tells the line and the column of a fault, wherever it is', () => {
    fc.assert(
      fc.property(lists, fc.nat(), fc.integer({ min: 2, max: 6 }), (written, pick, indent) => {
        const faulty = pick % written.length;
        const documents = written.map(({ sources, annotations, ...target }, index) => ({
          target: `${target.repository}:${target.tag}`,
          sources: sources.map(([wanted, where, version]) => `${wanted}=${where}:${version}`),
          ...(index === faulty ? { type: 'wrong-type' } : {}),
          annotations,
        }));
        for (const text of [
          stringify({ lists: documents }, { indent }),
          JSON.stringify({ lists: documents }, null, indent),
        ]) {
          const name = text.startsWith('{') ? 'x.json' : 'x.yaml';
          const offset = /"?type"?: (?="?wrong-type)/.exec(text);
          const before = text.slice(0, (offset?.index ?? 0) + (offset?.[0].length ?? 0)).split('\n');
          expect(failureOf(() => read(text, { name })).message).toMatch(
            new RegExp(
              `^${name}:${before.length}:${(before.at(-1) ?? '').length + 1}: "lists\\[${faulty}\\]\\.type" must be`,
            ),
          );
        }
      }),
      { numRuns: 100 },
    );
  });
});
