import type { Platform } from '../../src/model/descriptor.ts';
import type { RunningRegistry } from '../../src/registry-server/index.ts';
import {
  type BuiltManifest,
  MEDIA_TYPES,
  makeAttestedIndex,
  makeImage,
  makeIndex,
  putBuilt,
} from '../helpers/images.ts';

/** Where the registry's address stands in the golden files of `test/golden/docker-inspect`, made by `capture.ts` there. */
export const HOST = 'REGISTRY';

/** What is asked of `docker manifest` or of ours: the words after it, references without their host. */
export type Form = { readonly name: string; readonly words: readonly string[] };

/** Documents of every kind that inspect shows differently. */
export function seedForms(registry: RunningRegistry): void {
  const put = (repository: string, manifest: BuiltManifest) => putBuilt(registry, repository, manifest, '1');
  const linux: Platform = { architecture: 'arm64', os: 'linux', variant: 'v8' };
  const windows: Platform = {
    architecture: 'amd64',
    os: 'windows',
    'os.version': '10.0.<17763>&1',
    'os.features': ['win32k', 'other'],
  };
  const oci = makeImage('oci', { platform: linux, annotations: { a: '<b>&c' }, layers: 1 });
  const docker = makeImage('docker', { platform: windows, docker: true, layers: 1 });
  const silent = makeImage('silent', { platform: {}, docker: true, layers: 1 });
  put('f/oci', oci);
  put('f/docker', docker);
  put('f/silent', silent);
  const attested = makeAttestedIndex(oci, linux);
  put('f/attested', attested);
  const [, attestation] = attested.children;
  if (attestation !== undefined) put('f/attestation', attestation);
  const annotated = { manifest: oci, platform: linux, annotations: { lost: 'here' } };
  put('f/index', makeIndex([annotated, { manifest: docker, platform: windows }], { annotations: { lost: 'too' } }));
  put('f/list', makeIndex([{ manifest: docker, platform: windows }, { manifest: silent }], { docker: true }));
  const partial = { os: 'linux', variant: 'v7' } as Platform;
  put('f/partial', makeIndex([{ manifest: oci, platform: partial }]));

  const helm = registry.putBlob('f/odd', Buffer.from('{"name":"chart","version":"1.0.0"}'));
  const odd = `\n{"layers":[ ],"annotations":{ },\t"x":[1.0,1e3,{}],"config":{"size":34,"digest":"${helm}","mediaType":"application/vnd.cncf.helm.config.v1+json"},"mediaType":"${MEDIA_TYPES.ociManifest}","schemaVersion":2,"escaped":"\\u0041\\"\\/<\\u003c"}\r\n\n `;
  registry.setTag('f/odd', '1', registry.putManifest('f/odd', Buffer.from(odd), MEDIA_TYPES.ociManifest));
}

/** What is done before the forms are asked for. */
export const STEPS: readonly (readonly string[])[] = [
  ['create', 'f/draft:1', 'f/oci:1', 'f/docker:1', 'f/silent:1'],
  ['annotate', 'f/draft:1', 'f/silent:1', '--os', 'linux', '--arch', 'arm', '--variant', 'v7'],
  ['annotate', 'f/draft:1', 'f/docker:1', '--os-features', 'third,win32k', '--os-version', '10.0.<1>'],
  ['create', 'f/bare:1', 'f/silent:1', 'f/odd:1'],
];

const DOCUMENTS = ['oci', 'docker', 'silent', 'attestation', 'attested', 'index', 'list', 'partial', 'odd'];

/** Everything that is asked: documents of the registry, drafts, and entries of drafts, each with and without -v. */
export const FORMS: readonly Form[] = [
  ...DOCUMENTS.map((name) => ({ name, words: [`f/${name}:1`] })),
  { name: 'draft', words: ['f/draft:1'] },
  { name: 'draft-bare', words: ['f/bare:1'] },
  { name: 'entry-oci', words: ['f/draft:1', 'f/oci:1'] },
  { name: 'entry-docker', words: ['f/draft:1', 'f/docker:1'] },
  { name: 'entry-odd', words: ['f/bare:1', 'f/odd:1'] },
].flatMap(({ name, words }) => [
  { name, words: ['inspect', ...words] },
  { name: `${name}-verbose`, words: ['inspect', '-v', ...words] },
]);

/** The words with the references of this registry. */
export function wordsFor(registry: RunningRegistry, words: readonly string[]): readonly string[] {
  return words.map((word) => (word.startsWith('f/') ? `${registry.host}/${word}` : word));
}
