import * as v from 'valibot';
import { parseConfigText, positionOf } from '../../../src/config/position.ts';
import { CONFIG } from '../../../src/config/schema.ts';
import { digestOf } from '../../../src/model/digest.ts';
import { makeAttestedIndex, makeImage } from '../../../src/registry-server/index.ts';
import { decodeDraft, encodeDraft } from '../../../src/store/codec.ts';
import { readDockerEntry } from '../../../src/store/docker-entry.ts';
import { attempt, bytesOf, must, same, type Target } from '../target.ts';
import { JSON_WORDS } from './documents.ts';

const PLATFORM = { os: 'linux', architecture: 'arm64' };
const IMAGE = makeImage('draft', { platform: PLATFORM });
const INDEX = makeAttestedIndex(IMAGE, PLATFORM);

function entry(reference: string, built: typeof IMAGE, children: readonly (typeof IMAGE)[]) {
  return {
    reference,
    root: built.descriptor,
    children: children.map(({ descriptor }, index) => ({
      descriptor,
      ...(index === 0 ? { changes: { platform: PLATFORM, annotations: { a: 'b' } } } : {}),
    })),
  };
}

function draftText(): string {
  const all = [IMAGE, INDEX, ...INDEX.children];
  return JSON.stringify({
    schemaVersion: 1,
    reference: 'ghcr.io/acme/app:1',
    docker: digestOf(Buffer.from('')),
    entries: [entry('ghcr.io/acme/arm64:1', IMAGE, [IMAGE]), entry('ghcr.io/acme/index:1', INDEX, INDEX.children)],
    manifests: Object.fromEntries(all.map(({ descriptor, bytes }) => [descriptor.digest, bytes.toString('base64')])),
  });
}

const DRAFT = draftText();

const draft: Target = {
  name: 'draft',
  corpus: [DRAFT, '{"schemaVersion":1,"reference":"docker.io/library/x:1","entries":[],"manifests":{}}'],
  words: ['"changes":{', '"platform":{"os":"linux"},', '"annotations":{"a":"b"},', 'ghcr.io/acme/app:1', ...JSON_WORDS],
  // Changes what no digest protects, so that drafts remain which are one.
  make: (random) => {
    const part = random.pick(['"a":"b"', '"linux"', 'arm64:1', 'app:1', '"changes"', '"schemaVersion":1', '"size"']);
    return DRAFT.replace(part, (found) =>
      random.pick([`${random.pick(JSON_WORDS)}${found}`, `${found} `, found.toUpperCase()]),
    );
  },
  share: 8,
  check(text) {
    const stored = attempt(['DRAFT_INVALID'], () => decodeDraft(bytesOf(text), 'x'));
    if (stored === undefined) return false;
    const bytes = encodeDraft(stored);
    const again = decodeDraft(bytes, 'x');
    must(same(again.draft, stored.draft), 'reads back otherwise', again.draft);
    must(Buffer.from(encodeDraft(again)).equals(bytes), 'writes other bytes the second time');
    return true;
  },
};

const REFERENCE = 'docker.io/library/debian:arm64';
const RAW = makeImage('docker entry', { docker: true, indent: 3 });

const dockerEntry: Target = {
  name: "entry of docker's draft",
  corpus: [
    JSON.stringify({
      Ref: REFERENCE,
      Descriptor: { ...RAW.descriptor, platform: { ...PLATFORM, variant: 'armv8' } },
      Raw: RAW.bytes.toString('base64'),
      SchemaV2Manifest: JSON.parse(RAW.bytes.toString()),
    }),
    JSON.stringify({
      Ref: REFERENCE,
      Descriptor: RAW.descriptor,
      SchemaV2Manifest: JSON.parse(RAW.bytes.toString()),
    }),
    JSON.stringify({
      Ref: REFERENCE,
      Digest: RAW.descriptor.digest,
      Platform: { architecture: '', os: 'linux' },
      SchemaV2Manifest: JSON.parse(RAW.bytes.toString()),
    }),
  ],
  words: [
    '"Ref":',
    '"Raw":',
    '"Descriptor":{',
    '"Platform":{',
    '"variant":"v9",',
    '"raw":""',
    REFERENCE,
    ...JSON_WORDS,
  ],
  share: 8,
  check(text) {
    const name = 'docker.io_library_debian-arm64';
    const read = attempt(['DRAFT_INVALID'], () => readDockerEntry(bytesOf(text), name, 'x'));
    if (read === undefined) return false;
    must(digestOf(read.bytes) === read.entry.root.digest, 'bytes of another digest');
    must(read.entry.reference === REFERENCE, 'an entry of another file', read.entry.reference);
    return true;
  },
};

const YAML = `jobs: 8
retries: 3
timeout: 10m
registries:
  ghcr.io:
    maxRps: 5
    mount: never # because
  "localhost:5000":
    plainHttp: true
    chunkSize: 8MiB
`;

const config: Target = {
  name: 'configuration',
  corpus: [
    YAML,
    '{"jobs": 8, "registries": {"ghcr.io": {"mount": "never"}}}',
    'a: &a [1, 2]\nb: *a\nc: *a\n',
    'a: &a [*a]\n',
    '---\n...\n---\njobs: 1\n',
    '? [a, b]\n: x\n',
    '!!js/function x',
    'jobs: !!binary aGVsbG8=\n',
    '<<: {jobs: 1}\n',
    '- 1\n',
    '%YAML 1.2\n---\njobs: 0o17\n',
    '',
  ],
  words: [
    'jobs',
    'registries:\n  ',
    'x.test:\n    ',
    ': ',
    '- ',
    '&a ',
    '*a',
    '!!',
    '? ',
    '|\n',
    '>-\n',
    '"',
    '\n  ',
    '{',
    '[',
    '#',
    '---\n',
    '<<: ',
  ],
  // A parser of the market, tried because what it throws must be told well; it costs a hundred times the others.
  share: 20,
  check(text) {
    let taken = false;
    for (const path of ['x.yaml', 'x.json']) {
      const value = attempt(['CONFIG_INVALID'], () => parseConfigText(path, text));
      if (value === undefined || value === null) continue;
      const result = v.safeParse(CONFIG, value);
      taken ||= result.success;
      const keys = (result.issues?.[0]?.path ?? []).map((item) => item.key as PropertyKey);
      must(/^[1-9]\d*:[1-9]\d*$/.test(positionOf(path, text, keys, 'key')), 'no position', keys.map(String));
    }
    return taken;
  },
};

export const FILE_TARGETS: readonly Target[] = [draft, dockerEntry, config];
