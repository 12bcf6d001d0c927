import type { Descriptor, Platform } from '../model/descriptor.ts';
import { MEDIA_TYPES } from '../model/descriptor.ts';
import type { Inspection } from '../publish/findings.ts';

/**
 * What `docker manifest inspect` prints: an image's own document indented with tabs, a list built anew from size,
 * digest, media type and platform, indented with three spaces.
 *
 * @see docker/cli cli/command/manifest/inspect.go
 */
export function dockerText({ manifest, bytes }: Inspection): string {
  if (manifest.kind === 'image') return `${harmless(indented(new TextDecoder().decode(bytes)))}\n`;
  const [first] = manifest.manifests;
  const list = {
    schemaVersion: 2,
    // Docker takes the type from the first entry, not from the list.
    mediaType: first?.mediaType === MEDIA_TYPES.ociManifest ? MEDIA_TYPES.ociIndex : MEDIA_TYPES.dockerList,
    manifests: manifest.manifests.map(entry),
  };
  const text = JSON.stringify(list, null, 3).replace(/[<>&\u2028\u2029]/g, escaped);
  return `${harmless(text)}\n`;
}

function entry({ mediaType, size, digest, platform }: Descriptor): object {
  return { mediaType, size, digest, platform: dockerPlatform(platform) };
}

/** Docker always prints both names, also when the list has none. */
function dockerPlatform(platform: Platform | undefined): object {
  if (platform === undefined) return { architecture: '', os: '' };
  const { architecture, os, variant } = platform;
  const features = platform['os.features'];
  return {
    architecture,
    os,
    ...(platform['os.version'] === undefined ? {} : { 'os.version': platform['os.version'] }),
    ...(features === undefined || features.length === 0 ? {} : { 'os.features': features }),
    ...(variant === undefined ? {} : { variant }),
  };
}

/** Go's json.Indent with a tab: white space is laid out anew, every other character stays as it was. */
function indented(json: string): string {
  let out = '';
  let depth = 0;
  const newLine = () => `\n${'\t'.repeat(depth)}`;
  for (const [token] of json.matchAll(/"(?:[^"\\]|\\.)*"|[{[]\s*[}\]]|[{}[\],:]|[^\s{}[\],:"]+/g)) {
    if (token === '{' || token === '[') {
      depth++;
      out += token + newLine();
    } else if (token === '}' || token === ']') {
      depth--;
      out += newLine() + token;
    } else if (token === ',') out += token + newLine();
    else if (token === ':') out += ': ';
    else out += /^[{[]/.test(token) ? token.replace(/\s/g, '') : token;
  }
  return out;
}

/** Characters that a terminal acts on are written as escapes; in a valid document they stand only inside strings. */
function harmless(json: string): string {
  return json.replace(/[\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}]/gu, (character) =>
    [...character.split('')].map(escaped).join(''),
  );
}

function escaped(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
