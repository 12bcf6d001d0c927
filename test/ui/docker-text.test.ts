import { describe, expect, it } from 'vitest';
import { MEDIA_TYPES } from '../../src/model/descriptor.ts';
import { digestOf } from '../../src/model/digest.ts';
import { parseManifest } from '../../src/model/manifest.ts';
import { dockerText, dockerVerbose } from '../../src/ui/docker-text.ts';

function shown(json: string): string {
  const bytes = Buffer.from(json);
  const digest = digestOf(bytes);
  const manifest = parseManifest(bytes, digest, undefined, 'reg/x:1');
  return dockerText({ reference: 'reg/x:1', digest, mediaType: manifest.mediaType, bytes, manifest });
}

const D = (letter: string) => `sha256:${letter.repeat(64)}`;
const CONFIG = `{"mediaType":"${MEDIA_TYPES.ociConfig}","digest":"${D('a')}","size":2}`;

describe('an image', () => {
  it('is its own document, indented with tabs as Go does', () => {
    const document = `{ "schemaVersion":2,"mediaType":"${MEDIA_TYPES.ociManifest}",\n"config":${CONFIG},"layers":[ ],"annotations":{"a\\u0041\\"}":"x: {y}, [z]","n":"\\/"} }`;
    expect(shown(document)).toBe(`{
\t"schemaVersion": 2,
\t"mediaType": "${MEDIA_TYPES.ociManifest}",
\t"config": {
\t\t"mediaType": "${MEDIA_TYPES.ociConfig}",
\t\t"digest": "${D('a')}",
\t\t"size": 2
\t},
\t"layers": [],
\t"annotations": {
\t\t"a\\u0041\\"}": "x: {y}, [z]",
\t\t"n": "\\/"
\t}
}
`);
  });

  it('cannot write to the terminal what a terminal obeys', () => {
    const text = shown(`{"schemaVersion":2,"config":${CONFIG},"layers":[],"annotations":{"a":"\u009b31m\u202e"}}`);
    expect(text).toContain('"a": "\\u009b31m\\u202e"');
  });
});

describe('a list', () => {
  it('is built anew from size, digest, media type and platform, with three spaces', () => {
    const entry = `{"mediaType":"${MEDIA_TYPES.ociManifest}","digest":"${D('b')}","size":3,"annotations":{"x":"y"}`;
    const text = shown(
      `{"schemaVersion":2,"mediaType":"${MEDIA_TYPES.ociIndex}","manifests":[` +
        `${entry},"platform":{"os":"windows","os.features":["win32k"],"architecture":"amd64","os.version":"10.0<1>"}},${entry}}],` +
        `"annotations":{"lost":"by docker"}}`,
    );
    expect(text).toBe(`{
   "schemaVersion": 2,
   "mediaType": "${MEDIA_TYPES.ociIndex}",
   "manifests": [
      {
         "mediaType": "${MEDIA_TYPES.ociManifest}",
         "size": 3,
         "digest": "${D('b')}",
         "platform": {
            "architecture": "amd64",
            "os": "windows",
            "os.version": "10.0\\u003c1\\u003e",
            "os.features": [
               "win32k"
            ]
         }
      },
      {
         "mediaType": "${MEDIA_TYPES.ociManifest}",
         "size": 3,
         "digest": "${D('b')}",
         "platform": {
            "architecture": "",
            "os": ""
         }
      }
   ]
}
`);
  });
});

describe('--verbose', () => {
  const bytes = Buffer.from(`{"b":1.0,\n"a":"<\u2028\u009b>"}\n`);
  const image = {
    reference: 'reg/x:1',
    descriptor: { mediaType: MEDIA_TYPES.dockerManifest, digest: digestOf(bytes), size: bytes.length },
    platform: { os: 'linux' },
    bytes,
  };
  const shown = `{
\t"Ref": "reg/x:1",
\t"Descriptor": {
\t\t"mediaType": "${MEDIA_TYPES.dockerManifest}",
\t\t"digest": "${digestOf(bytes)}",
\t\t"size": ${bytes.length},
\t\t"platform": {
\t\t\t"architecture": "",
\t\t\t"os": "linux"
\t\t}
\t},
\t"Raw": "${bytes.toString('base64')}",
\t"SchemaV2Manifest": {
\t\t"b": 1.0,
\t\t"a": "\\u003c\\u2028\\u009b\\u003e"
\t}
}
`;

  it('is an object for an image, its document as it is but for what Go escapes and a terminal obeys', () => {
    expect(dockerVerbose(image)).toBe(shown);
  });

  it('is an array for a list, also of one image or of none', () => {
    const indented = shown.trimEnd().replaceAll('\n', '\n\t');
    expect(dockerVerbose([image])).toBe(`[\n\t${indented}\n]\n`);
    expect(dockerVerbose([])).toBe('[]\n');
  });

  it('holds the largest manifest that a registry takes', () => {
    const large = Buffer.from(JSON.stringify({ a: '\n<'.repeat(1024 * 1024) }));
    const { OCIManifest, Raw } = JSON.parse(
      dockerVerbose({
        ...image,
        descriptor: { ...image.descriptor, mediaType: MEDIA_TYPES.ociManifest },
        bytes: large,
      }),
    );
    expect(JSON.stringify(OCIManifest)).toBe(large.toString());
    expect(Raw).toBe(large.toString('base64'));
  });
});
