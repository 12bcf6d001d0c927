import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { loadConfig } from '../../src/config/load.ts';
import { CONFIG, REGISTRY_ENTRIES } from '../../src/config/schema.ts';
import { SEARCH_PLACES } from '../../src/config/values.ts';
import { EXIT_CODES } from '../../src/errors.ts';
import { readSpec } from '../../src/spec/index.ts';
import { withDirectory } from '../helpers/registry.ts';
import { blocksOf, markdownFiles, ROOT, read } from './pages.ts';

const blocks = markdownFiles()
  .filter((page) => !page.startsWith('test/'))
  .flatMap((page) => blocksOf(read(page)).map(({ language, text }) => ({ page, language, text })));
const ofLanguage = (wanted: string) => blocks.filter(({ language }) => language === wanted);

/** What a document in YAML is, by its keys. */
function kindOf(value: unknown): 'spec' | 'config' | 'ci' | 'unknown' {
  const keys = Object.keys(Object(value));
  if (keys.some((key) => ['target', 'targets', 'lists', 'manifests'].includes(key))) return 'spec';
  if (keys.length > 0 && keys.every((key) => key in CONFIG.entries)) return 'config';
  return maps(value).some((map) => 'uses' in map || 'run' in map || 'script' in map) ? 'ci' : 'unknown';
}

/** Every map within, itself included. */
function maps(value: unknown): readonly Readonly<Record<string, unknown>>[] {
  if (value === null || typeof value !== 'object') return [];
  const inner = Object.values(value).flatMap(maps);
  return Array.isArray(value) ? inner : [value as Readonly<Record<string, unknown>>, ...inner];
}

const action = parseAllDocuments(readFileSync(join(ROOT, 'action.yml'), 'utf8'))[0]?.toJS() as {
  readonly inputs: object;
  readonly outputs: object;
};

describe('YAML in the pages', () => {
  it.each(ofLanguage('yaml'))('is what it seems: $page $text', async ({ text }) => {
    const documents = parseAllDocuments(text);
    expect(documents.flatMap(({ errors, warnings }) => [...errors, ...warnings])).toEqual([]);
    const values = documents.map((document): unknown => document.toJS());
    const [kind] = values.map(kindOf);
    expect(new Set(values.map(kindOf)), 'of one kind').toEqual(new Set([kind]));
    if (kind === 'spec') {
      const variables = { VERSION: '1' };
      expect(readSpec({ name: 'page.yaml', text, variables }, { flags: {} }).length).toBeGreaterThan(0);
    } else if (kind === 'config') {
      await withDirectory(async (folder) => {
        const named = join(folder, 'page.yaml');
        writeFileSync(named, text);
        const { config } = await loadConfig({ named, namedByEnvironment: undefined, folder });
        expect(config).not.toEqual({});
      });
    } else {
      expect(kind).toBe('ci');
      for (const step of values.flatMap(maps).filter((map) => String(map['uses']).startsWith('OWNER/'))) {
        expect(step['uses']).toBe('OWNER/manifest-publish@COMMIT');
        for (const input of Object.keys(Object(step['with']))) expect(Object.keys(action.inputs)).toContain(input);
      }
      for (const [, output = ''] of text.matchAll(/steps\.publish\.outputs\.([\w-]+)/g)) {
        expect(Object.keys(action.outputs)).toContain(output);
      }
    }
  });

  it('is of every kind', () => {
    const kinds = ofLanguage('yaml').flatMap(({ text }) => parseAllDocuments(text).map((one) => kindOf(one.toJS())));
    expect(new Set(kinds)).toEqual(new Set(['spec', 'config', 'ci']));
    expect(kindOf({ jbos: 8 })).toBe('unknown');
  });
});

describe('JSON in the pages', () => {
  it.each(ofLanguage('json'))('can be read: $page $text', ({ text }) => {
    expect(() => JSON.parse(text) as unknown).not.toThrow();
  });
});

describe('docs/config.md', () => {
  const page = read('docs/config.md');

  it('has every key', () => {
    const keys = [...Object.keys(CONFIG.entries), ...Object.keys(REGISTRY_ENTRIES)];
    for (const key of keys.filter((one) => one !== 'registries')) expect(page).toContain(`\`${key}\``);
    // Endings stand beside the names.
    for (const place of SEARCH_PLACES) expect(page).toContain(place.replace(/\.(?:yaml|yml|json)$/, ''));
  });

  it('has every variable of ours', () => {
    const sources = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' });
    const named = sources
      .filter((name) => name.endsWith('.ts'))
      .flatMap((name) => read(join('src', name)).match(/MANIFEST_PUBLISH_[A-Z_]*[A-Z]/g) ?? []);
    expect(new Set(named).size).toBeGreaterThan(7);
    for (const name of new Set(named)) expect(page).toContain(`\`${name}\``);
  });
});

describe('README.md', () => {
  it('has every exit code of a failure', () => {
    const table = [...read('README.md').matchAll(/^\| ([\d, ]+) \| .* \|$/gm)].flatMap(([, codes = '']) =>
      codes.split(', ').map(Number),
    );
    expect(table).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 130, 143]);
    for (const code of Object.values(EXIT_CODES)) expect(table).toContain(code);
  });
});
