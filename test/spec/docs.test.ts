import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { jsonSchema } from '../../scripts/json-schema.ts';
import { parsePlatform } from '../../src/model/platform.ts';
import { formatReference } from '../../src/model/reference.ts';
import { publishLists } from '../../src/publish/publish-lists.ts';
import type { RunningRegistry } from '../../src/registry-server/index.ts';
import { SPEC } from '../../src/spec/schema.ts';
import { seedImage } from '../helpers/images.ts';
import { withPorts } from '../helpers/publishing.ts';
import { startRegistry } from '../helpers/registry.ts';
import { failureOf, read } from './reading.ts';

const text = readFileSync(new URL('../../docs/spec.md', import.meta.url), 'utf8');
const blocks = [...text.matchAll(/^## (.*)$|^```yaml\n([\s\S]*?)^```$/gm)];
const examples = blocks.flatMap(([, heading, yaml], index) => {
  const above = blocks.slice(0, index).findLast((block) => block[1] !== undefined)?.[1] ?? '';
  return heading === undefined && yaml !== undefined ? [[above, yaml] as const] : [];
});

let registries: readonly RunningRegistry[];

beforeEach(async () => {
  registries = [await startRegistry(), await startRegistry()];
});

afterEach(() => Promise.all(registries.map((registry) => registry.close())));

describe('the examples of docs/spec.md', () => {
  it('are of every kind', () => {
    expect(examples.map(([heading]) => heading)).toEqual([
      'One list',
      'One list',
      'Many lists',
      'Variables',
      'Files of manifest-tool',
    ]);
  });

  it.each(examples)('run: %s', async (_heading, yaml) => {
    const [own, mirror] = registries;
    if (own === undefined || mirror === undefined) throw new Error('two registries');
    const here = yaml.replaceAll('registry.example.com', own.host).replaceAll('mirror.example.com', mirror.host);
    const requests = read(here, { variables: { VERSION: '1.0' } });
    for (const { sources } of requests) {
      for (const { reference } of sources) {
        const name = /-([^-]*)$/.exec(reference.repository)?.[1] ?? '';
        if (own.tagOf(reference.repository, reference.tag ?? '') !== undefined) continue;
        seedImage(own, reference.repository, reference.tag ?? '', { platform: parsePlatform(name) });
      }
    }
    const report = await withPorts({}, (ports, signal) => publishLists(requests, ports, signal, {}), registries);
    expect(report.lists.flatMap(({ targets }) => targets.map(({ reference, action }) => [reference, action]))).toEqual(
      requests.flatMap(({ targets }) => targets.map((target) => [formatReference(target), 'created'])),
    );
    expect(report.lists.map(({ images }) => images.length)).toEqual(requests.map(({ sources }) => sources.length));
  });

  it('of an error is what is said', () => {
    const shown = /```\n(app\.yaml:.*)\n```/.exec(text)?.[1];
    expect(failureOf(() => read('target: a:1\nsources: [b]\nexpectPlatfroms: [linux/amd64]\n')).message).toBe(shown);
  });

  it('name every key of a list', () => {
    const schema = JSON.parse(JSON.stringify(jsonSchema(SPEC))) as {
      readonly anyOf: readonly { readonly properties: object }[];
    };
    for (const key of Object.keys(schema.anyOf[1]?.properties ?? {})) expect(text).toContain(`\`${key}\``);
  });
});

describe('docs/spec.schema.json', () => {
  it('is what the validator says', () => {
    const written = JSON.parse(readFileSync(new URL('../../docs/spec.schema.json', import.meta.url), 'utf8')) as object;
    expect(written).toEqual({
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      title: 'Spec files of manifest-publish',
      ...JSON.parse(JSON.stringify(jsonSchema(SPEC))),
    });
  });
});
