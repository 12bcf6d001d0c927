export { buildxMetadata, isBakeMetadata, type MetadataOptions } from './buildx-metadata.ts';
export { type DigestFile, type DigestsOptions, digestsFolder } from './digests-folder.ts';
export { type ActionMetadata, metadataAction } from './metadata-action.ts';
export { readSpec, readSpecs } from './read-spec.ts';
export type { SpecBase, SpecSettings } from './settings.ts';
export { expandTemplate } from './template.ts';
export type { SpecFile } from './tree.ts';
export type { Variables } from './variables.ts';
