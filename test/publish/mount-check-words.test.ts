import { describe, expect, it, test } from 'vitest';
import { registryOf } from '../../src/publish/mount-check-registry.ts';
import { decideMount, type MountEvidence, publishSentence } from '../../src/publish/mount-check-words.ts';

const REFUSED: MountEvidence = { write: true, any: 'session', first: 'session' };

describe('the verdict', () => {
  test.each<[name: string, evidence: MountEvidence, verdict: string]>([
    ['201 at once', { ...REFUSED, first: 'mounted', after: 'present' }, 'existence'],
    ['201 for a config', { ...REFUSED, write: false, first: 'mounted', after: 'present' }, 'mounts'],
    ['202, then 201', { ...REFUSED, second: 'mounted', after: 'present' }, 'referenced'],
    ['202 both times', { ...REFUSED, second: 'session' }, 'never'],
    ['202 for a config', { ...REFUSED, write: false }, 'never'],
    ['202, and an error without from (old Quay)', { ...REFUSED, write: false, any: 'refused' }, 'never'],
    ['201 without from', { ...REFUSED, any: 'mounted', first: 'mounted', after: 'present' }, 'discovery'],
    ['404 until a manifest names it', { ...REFUSED, first: 'refused', second: 'mounted' }, 'referenced'],
    ['201 that nobody could look after', { ...REFUSED, first: 'mounted', after: 'unknown' }, 'existence'],
    ['202, then 403', { ...REFUSED, second: 'refused', refusal: 'x' }, 'unknown'],
    ['403 both times', { ...REFUSED, first: 'refused', second: 'refused', refusal: 'x' }, 'unknown'],
    ['403 for a config', { ...REFUSED, write: false, first: 'refused', refusal: 'x' }, 'unknown'],
    ['202, and no manifest was taken', { ...REFUSED, unreferenced: 'x' }, 'unknown'],
    ['201 with nothing behind it', { ...REFUSED, first: 'mounted', after: 'absent' }, 'unknown'],
  ])('of %s', (_, evidence, verdict) => {
    expect(decideMount(evidence).verdict).toBe(verdict);
  });

  it('calls only a 201 with nothing behind it a lie', () => {
    expect(decideMount({ ...REFUSED, any: 'mounted', first: 'mounted', after: 'absent' })).toMatchObject({
      lied: true,
    });
    expect(decideMount({ ...REFUSED, second: 'refused', refusal: 'x' })).toMatchObject({ lied: false });
    // A blob that nobody mounted may well be absent.
    expect(decideMount({ ...REFUSED, second: 'session', after: 'absent' })).toEqual({ verdict: 'never' });
  });
});

describe('what publish does', () => {
  const outlook = {
    verdict: 'never',
    blobs: 5,
    bytes: 1000,
    shared: false,
    refused: false,
    lied: false,
    mounting: 'auto',
  } as const;

  it.each([
    ['session', outlook, /streams 1000 bytes \(5 blobs\), each blob into the upload session/],
    ['refused', { ...outlook, verdict: 'unknown', refused: true }, /opens an upload without mount, streams 1000 bytes/],
    ['shared', { ...outlook, shared: true }, /sends none/],
    ['unknown', { ...outlook, verdict: 'unknown' }, /at most 1000 bytes/],
    ['lied', { ...outlook, verdict: 'unknown', lied: true }, /looks for every blob after its 201/],
    ['mounted', { ...outlook, verdict: 'referenced', blobs: 1 }, /^mounts the 1 blob of this image/],
    ['configured', { ...outlook, verdict: 'existence', mounting: 'never' }, /asks for no mount here/],
  ] as const)('%s', (_, given, words) => {
    expect(publishSentence(given)).toMatch(words);
  });
});

describe('which registry it is', () => {
  test.each([
    ['123456789012.dkr.ecr.eu-west-1.amazonaws.com', 'Amazon ECR'],
    ['123456789012.dkr.ecr-fips.us-east-1.amazonaws.com', 'Amazon ECR'],
    ['public.ecr.aws', 'Amazon ECR Public'],
    ['docker.io', 'Docker Hub'],
    ['ghcr.io', 'GitHub Container Registry'],
    ['europe-docker.pkg.dev', 'Google Artifact Registry'],
    ['eu.gcr.io', 'Google Container Registry'],
    ['acme.azurecr.io', 'Azure Container Registry'],
    ['registry.example.com:5000', undefined],
    ['ghcr.io.example.com', undefined],
    ['notgcr.io', undefined],
  ])('%s', (host, kind) => {
    expect(registryOf(host, new Map()).kind).toBe(kind);
  });

  it('is told by headers of its own, and by nothing that many send', () => {
    expect(registryOf('reg.test', new Map([['server', 'Nexus/3.70.0']])).kind).toBe('Sonatype Nexus');
    expect(registryOf('reg.test', new Map([['x-artifactory-id', 'present']])).kind).toBe('JFrog Artifactory');
    const plain = new Map([
      ['server', 'nginx'],
      ['docker-distribution-api-version', 'registry/2.0'],
      ['oci-chunk-min-length', '5242880'],
    ]);
    expect(registryOf('reg.test', plain)).toEqual({
      signs: [
        'host name: reg.test',
        'Docker-Distribution-Api-Version: registry/2.0',
        'OCI-Chunk-Min-Length: 5242880',
        'Server: nginx',
      ],
    });
  });
});
