import { formatPlatform, platformKey } from '../model/platform.ts';
import { descriptorOf, imagesOf } from './children.ts';
import type { Draft } from './draft.ts';

/**
 * What `push` will refuse if the draft stays as it is: two images for one platform, which leave it to chance what a
 * client pulls, and images whose platform nobody has told. A draft may hold both, as docker's may.
 */
export function draftWarnings(draft: Draft): readonly string[] {
  const warnings: string[] = [];
  const seen = new Map<string, string>();
  const images = draft.entries.flatMap((entry) => imagesOf(entry).map((child) => ({ entry, child })));
  for (const { entry, child } of images) {
    const { platform, annotations = {}, digest } = descriptorOf(child);
    const name = entry.root.digest === digest ? entry.reference : `${entry.reference} (${digest})`;
    if (platform === undefined) {
      warnings.push(`${name} tells no os or no architecture: say it with annotate before push`);
      continue;
    }
    // Entries with other annotations are told apart by clients that know them.
    const key = `${platformKey(platform)} ${JSON.stringify(Object.entries(annotations).sort())}`;
    const other = seen.get(key);
    if (other !== undefined) {
      const both = `${other} and ${name} are both for ${formatPlatform(platform)}`;
      warnings.push(`${both}: annotate one, or drop it with annotate --remove, before push`);
    } else seen.set(key, name);
  }
  return warnings;
}
