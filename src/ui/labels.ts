import type { Platform } from '../model/descriptor.ts';
import { MEDIA_TYPES } from '../model/descriptor.ts';
import { formatPlatform } from '../model/platform.ts';
import { shortDigest } from './format.ts';
import type { Cell } from './table.ts';
import { untrusted } from './text.ts';

/** What a child of an index is called in a table; platforms come from configs and are not ours. */
export function imageLabel(image: { readonly kind: string; readonly platform?: Platform | undefined }): string {
  if (image.kind !== 'image') return image.kind;
  return image.platform === undefined ? 'no platform' : untrusted(formatPlatform(image.platform), 60);
}

/** A digest that is shortened where the line would be too long. */
export function digestCell(digest: string): Cell {
  return { text: digest, short: shortDigest(digest), style: 'quiet' };
}

/** `OCI index` and the like; a type that we do not know is shown as it is. */
export function mediaTypeLabel(mediaType: string): string {
  switch (mediaType) {
    case MEDIA_TYPES.ociIndex:
      return 'OCI index';
    case MEDIA_TYPES.ociManifest:
      return 'OCI image';
    case MEDIA_TYPES.dockerList:
      return 'Docker list';
    case MEDIA_TYPES.dockerManifest:
      return 'Docker image';
    default:
      return untrusted(mediaType, 80);
  }
}
