// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of spec files are what is read here
import { PublishError } from '../../../src/errors.ts';
import { digestOf } from '../../../src/model/digest.ts';
import { formatPlatform } from '../../../src/model/platform.ts';
import { formatReference, parseReference } from '../../../src/model/reference.ts';
import type { PublishRequest } from '../../../src/publish/request.ts';
import { buildxMetadata, digestsFolder, metadataAction, readSpec } from '../../../src/spec/index.ts';
import { readJson } from '../../../src/spec/json-tree.ts';
import { plainValue } from '../../../src/spec/tree.ts';
import { attempt, must, same, type Target } from '../target.ts';
import { JSON_WORDS } from './documents.ts';

const DIGEST = digestOf(Buffer.from(''));
const TARGET = parseReference('ghcr.io/acme/app:1');

const TOOL = `image: ghcr.io/acme/app:3.10
tags: ["latest", 1e3]
annotations: { a: b }
manifests:
  - image: ghcr.io/acme/app-386:1
    platform: { architecture: 386, os: linux }
  -
    image: acme/win@${DIGEST}
    platform:
      architecture: amd64
      os: windows
      osversion: 10.0.1
      os.features: [win32k]
`;

const OWN = `defaults: &d
  type: oci
  tags: [latest]
  annotations: { a: "$\${x}", b: '\${V}' }
lists:
  - target: ghcr.io/acme/app:1
    sources:
      - linux/arm/v7=ghcr.io/acme/armhf:1
      - ${DIGEST}
      - image: acme/app:1
        platform: linux/s390x
        annotations: { c: |
          text
          }
    entryAnnotations: { all: { d: e }, arm64: { f: g } }
    expectPlatforms: [linux/amd64]
  - targets: ["acme/tool:1", "oci:dir:1"]
    <<: *d
    template: { image: acme/tool-ARCHVARIANT:1, platforms: [linux/amd64, armhf] }
    amend: true
`;

/** Every failure of a file says where. */
function told<Value>(read: () => Value): Value | undefined {
  return attempt(['SPEC_INVALID'], () => {
    try {
      return read();
    } catch (error) {
      if (error instanceof PublishError) {
        must(/^x\.(?:yaml|json):[1-9]\d*:[1-9]\d*: \S/.test(error.message), 'a failure without a place', error.message);
        must(/^\p{Lu}/u.test(error.hint), 'a failure without a hint', error.hint);
      }
      throw error;
    }
  });
}

/** The same lists in our own format, as JSON. */
function written(requests: readonly PublishRequest[]): string {
  const lists = requests.map(({ targets, sources, annotations, type, platforms, expectPlatforms, ...more }) => ({
    targets: targets.map(formatReference),
    sources: sources.map((source) => ({
      image: formatReference(source.reference),
      ...(source.platform === undefined ? {} : { platform: source.platform }),
      ...(source.annotations === undefined ? {} : { annotations: source.annotations }),
    })),
    type,
    annotations: escaped(annotations),
    ...(platforms.length === 0 ? {} : { platforms: platforms.map(formatPlatform) }),
    ...(expectPlatforms === undefined ? {} : { expectPlatforms: expectPlatforms.map(formatPlatform) }),
    ...(more.amend === true ? { amend: true } : {}),
  }));
  return JSON.stringify({ lists });
}

function escaped(annotations: Readonly<Record<string, string>>): object {
  return Object.fromEntries(Object.entries(annotations).map(([key, value]) => [key, value.replaceAll('${', '$$${')]));
}

const outline = (requests: readonly PublishRequest[]) =>
  requests.map(({ targets, sources, annotations, type, platforms, expectPlatforms, amend }) => ({
    targets,
    sources: sources.map(({ reference, platform }) => ({ reference, platform })),
    annotations,
    type,
    platforms,
    expectPlatforms,
    amend,
  }));

const spec: Target = {
  name: 'spec file',
  corpus: [
    TOOL,
    OWN,
    '{"target": "a:1", "sources": ["b", {"image": "c"}]}',
    'target: a:1\nsources: [b]\n---\ntarget: a:2\nsources: [b]\n',
    'target: a:1\nsources: &x [*x]\n',
    'target: "a:1\nsources: [b]\n',
    'target: a:1\nsources:\n\t- b\n',
    '? [a, b]\n: x\n',
    '<<: {target: "a:1"}\nsources: [b]\n',
    'image: a:1\nmanifests:\n- image: b\n  platform: !!map {os: linux}\n',
    '%YAML 1.1\n---\ntarget: a:1\nsources: [b]\n...\n',
    '',
  ],
  words: [
    ...[
      'target: a:1\n',
      'targets: ',
      'sources: ',
      'lists:\n  - ',
      'defaults:\n  ',
      'template: ',
      'image: a\n',
      'manifests:\n- ',
    ],
    ...['platform: ', 'platforms: [linux/arm]\n', 'annotations: {a: b}\n', 'amend: true\n', 'all: ', 'os: linux\n'],
    ...[
      ': ',
      '- ',
      '&a ',
      '*a',
      '<<: ',
      '!!',
      '? ',
      '|\n',
      '>-\n',
      '"',
      '\n  ',
      '{',
      '[',
      ']',
      '}',
      ', ',
      '#',
      '---\n',
    ],
    ...['${V}', '${', '$${', 'linux/amd64=', DIGEST, '~', 'null', 'ARCH', '\t'],
  ],
  // A parser of the market under it; it costs a hundred times the others.
  share: 20,
  check(text) {
    let taken = false;
    for (const name of ['x.yaml', 'x.json']) {
      const requests = told(() => readSpec({ name, text, variables: { V: 'v' } }, { flags: {} }));
      if (requests === undefined) continue;
      taken = true;
      const names = requests.flatMap(({ targets }) => targets.map(formatReference));
      must(new Set(names).size === names.length, 'a target twice', names);
      for (const { targets, sources, origin = '' } of requests) {
        must(targets.length > 0 && sources.length > 0, 'a list that would take a tag down', targets, sources);
        must(
          targets.every(({ digest }) => digest === undefined),
          'a target with a digest',
          targets,
        );
        for (const place of [origin, ...sources.map((source) => source.origin ?? '')]) {
          must(new RegExp(`^${name.replace('.', '\\.')}:[1-9]\\d*:[1-9]\\d*$`).test(place), 'no place', place);
        }
      }
      const again = readSpec({ name: 'x.json', text: written(requests) }, { flags: {} });
      must(same(outline(again), outline(requests)), 'reads back otherwise', outline(again));
    }
    return taken;
  },
};

const BUILD = JSON.stringify({
  'buildx.build.provenance': { a: [1, 2.5e3, null] },
  'containerimage.descriptor': { mediaType: 'x', digest: DIGEST, size: 2 },
  'containerimage.digest': DIGEST,
  'image.name': 'acme/app:1,ghcr.io/acme/app',
});

const metadata: Target = {
  name: 'metadata of a build',
  corpus: [
    BUILD,
    `{"buildx.build.warnings":[],"app":${BUILD}}`,
    `{"app":${BUILD},"db":${BUILD}}`,
    `{"mediaType":"x","digest":"${DIGEST}","size":2,"platform":{"os":"linux","architecture":"arm"},"annotations":{"a":"b"}}`,
    '{"tags":["ghcr.io/acme/app:1","acme/app:latest"],"labels":{},"annotations":["index:a=b","manifest-descriptor[arm64]:c=d"]}',
    '{"tags":["a:1"],"annotations":["index,manifest:a=b"]}',
  ],
  words: [
    '"containerimage.digest":',
    '"image.name":"a",',
    '"tags":["a:1"],',
    'index:',
    'manifest[',
    ',',
    'manifest-descriptor:',
    ...JSON_WORDS,
  ],
  check(text) {
    const tree = told(() => readJson({ name: 'x.json', text }));
    const plain = attempt([], () => parsed(text.replace(/^\ufeff/, '')));
    if (tree !== undefined) must(plain !== undefined, 'takes what is no JSON');
    const value = tree === undefined ? undefined : told(() => plainValue(tree));
    if (value !== undefined) must(same(asTexts(value), asTexts(plain?.value)), 'not what JSON.parse reads', value);
    const build = told(() => buildxMetadata({ name: 'x.json', text }, { target: TARGET }));
    must(build?.every(({ reference }) => reference.digest !== undefined) ?? true, 'an image without a digest', build);
    const action = told(() => metadataAction({ name: 'x.json', text }));
    must(action === undefined || action.targets.length > 0, 'no target', action);
    const entries = [{ name: 'x', content: text }, { name: text.slice(0, 80) }];
    for (const entry of entries)
      attempt(['SPEC_INVALID'], () => digestsFolder([entry], { folder: 'x', target: TARGET }));
    return build !== undefined || action !== undefined;
  },
};

function parsed(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** What JSON.parse makes of a text, with words as texts; numbers stand for each other, since their text is kept here. */
function asTexts(value: unknown): unknown {
  return changed(value, (part) => (typeof part === 'boolean' ? String(part) : typeof part === 'number' ? '0' : part));
}

function changed(value: unknown, change: (part: unknown) => unknown): unknown {
  const text = JSON.stringify(value, (_key, part: unknown) => withoutNumber(change(part)));
  return text === undefined ? undefined : JSON.parse(text);
}

function withoutNumber(part: unknown): unknown {
  return typeof part === 'string' && NUMBER.test(part) ? '0' : part;
}

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

export const SPEC_TARGETS: readonly Target[] = [spec, metadata];
