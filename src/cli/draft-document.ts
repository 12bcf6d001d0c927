import type { Draft } from '../store/draft.ts';
import { flatDescriptor } from '../ui/render.ts';

/** A draft for `--json`: its descriptors as they stand in manifests. */
export function draftDocument({ entries, ...draft }: Draft): object {
  return {
    ...draft,
    entries: entries.map(({ root, children, ...entry }) => ({
      ...entry,
      root: flatDescriptor(root),
      children: children.map(({ descriptor, ...child }) => ({ descriptor: flatDescriptor(descriptor), ...child })),
    })),
  };
}
