import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseDigest } from '../../src/model/digest.ts';
import {
  formatReference,
  isLayoutHost,
  layoutFolder,
  parseReference,
  type Reference,
  repositoryName,
  requestTarget,
  withDigest,
  withTag,
  writtenReference,
} from '../../src/model/reference.ts';
import { failure } from './failure.ts';

const DIGEST = parseDigest(`sha256:${'a'.repeat(64)}`);

describe('a reference to an OCI image layout', () => {
  it.each<[string, Reference]>([
    ['oci:out', { host: 'oci:out', repository: '' }],
    ['oci:out:1.0', { host: 'oci:out', repository: '', tag: '1.0' }],
    ['oci:/srv/out:v1', { host: 'oci:/srv/out', repository: '', tag: 'v1' }],
    ['oci:../out', { host: 'oci:../out', repository: '' }],
    ['oci:.', { host: 'oci:.', repository: '' }],
    ['oci:./Out Put', { host: 'oci:./Out Put', repository: '' }],
    ['oci:/srv/10:30/out', { host: 'oci:/srv/10:30/out', repository: '' }],
    ['oci:/srv/10:30/', { host: 'oci:/srv/10:30/', repository: '' }],
    ['oci:/srv/10:30:v1', { host: 'oci:/srv/10:30', repository: '', tag: 'v1' }],
    ['oci:C:\\out', { host: 'oci:C:\\out', repository: '' }],
    ['oci:C:\\out:v1', { host: 'oci:C:\\out', repository: '', tag: 'v1' }],
    ['oci:c:/out', { host: 'oci:c:/out', repository: '' }],
    ['oci:c:latest', { host: 'oci:c', repository: '', tag: 'latest' }],
    ['oci:me@home:v1', { host: 'oci:me@home', repository: '', tag: 'v1' }],
    [`oci:out@${DIGEST}`, { host: 'oci:out', repository: '', digest: DIGEST }],
    [`oci:out:v1@${DIGEST}`, { host: 'oci:out', repository: '', tag: 'v1', digest: DIGEST }],
  ])('%s is read, and written as it was', (text, reference) => {
    expect(parseReference(text)).toEqual(reference);
    expect(formatReference(reference)).toBe(text);
  });

  it.each([
    ['oci:', 'no folder is named'],
    ['oci::v1', 'no folder is named'],
    ['oci:out:', 'not a tag: ""'],
    ['oci:out:a+b', 'not a tag: "a+b"'],
    ['oci:out@sha256:abc', 'not a sha256 or sha512 digest'],
    ['oci://out', 'a reference has no scheme'],
    ['oci:a\nb', 'not the path of a folder'],
    [`oci:${'a'.repeat(5000)}`, 'not the path of a folder'],
  ])('%j is refused', (text, message) => {
    const error = failure(() => parseReference(text));
    expect(error).toMatchObject({ code: 'REFERENCE_INVALID' });
    expect(error.message).toContain(message);
  });

  it('is proposed to those who write it as other tools do', () => {
    expect(failure(() => parseReference('oci-layout://out:1')).hint).toBe('Write oci:out:1');
    expect(failure(() => parseReference('ocidir://out:1')).hint).toBe('Write oci:out:1');
  });

  it('leaves the images of Docker Hub that are called so to those who name the Hub', () => {
    expect(parseReference('docker.io/library/oci:latest').host).toBe('docker.io');
  });

  it('has one repository, whose name is not shown', () => {
    expect(repositoryName(parseReference('oci:out:1'))).toBe('oci:out');
    expect(repositoryName(parseReference('ghcr.io/acme/app:1'))).toBe('ghcr.io/acme/app');
    expect(isLayoutHost('oci:out')).toBe(true);
    expect(isLayoutHost('ocidocker.io')).toBe(false);
    expect(layoutFolder('oci:/srv/out')).toBe('/srv/out');
  });

  it('asks for nothing by name where it names nothing, and is written as latest', () => {
    const bare = parseReference('oci:out');
    expect(requestTarget(bare)).toBe('');
    expect(writtenReference(bare)).toEqual({ host: 'oci:out', repository: '', tag: 'latest' });
    expect(writtenReference(parseReference(`oci:out@${DIGEST}`)).tag).toBeUndefined();
    expect(formatReference(withTag(bare, 'v1'))).toBe('oci:out:v1');
    expect(formatReference(withDigest(bare, DIGEST))).toBe(`oci:out@${DIGEST}`);
    expect(failure(() => withTag(bare, '-')).message).toContain('"oci:out"');
  });

  it('is read back as it was written, whatever the folder is called', () => {
    const part = fc.string({ minLength: 1, unit: fc.constantFrom('a', 'B', '.', '-', ':', '@', ' ', '=', 'ä', '\\') });
    const folder = fc.array(part, { minLength: 1, maxLength: 3 }).map((parts) => `${parts.join('/')}/`);
    const tag = fc.option(fc.constantFrom('1', 'latest', 'a.b-c'), { nil: undefined });
    const digest = fc.option(fc.constant(DIGEST), { nil: undefined });
    fc.assert(
      fc.property(folder, tag, digest, (name, someTag, someDigest) => {
        const reference = {
          host: `oci:${name}`,
          repository: '',
          ...(someTag === undefined ? {} : { tag: someTag }),
          ...(someDigest === undefined ? {} : { digest: someDigest }),
        };
        expect(parseReference(formatReference(reference))).toEqual(reference);
      }),
    );
  });
});
