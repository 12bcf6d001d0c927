export type { Operation } from './call.ts';
export type { FaultAction, FaultRule } from './faults.ts';
export {
  type BuiltBlob,
  type BuiltManifest,
  type ImageOptions,
  makeAttestation,
  makeAttestedIndex,
  makeImage,
  makeIndex,
  putBuilt,
} from './images.ts';
export type { JournalEntry } from './journal.ts';
export { findProfile, type NamedProfile, PROFILES, type ProfileMark } from './profiles.ts';
export { DEBIAN_NAMES, type SeededImage, type SeedOptions, seedDebian } from './seed.ts';
export { type RegistryOptions, type RunningRegistry, startRegistry } from './server.ts';
export type { RegistryUser } from './state.ts';
export type { TagMove } from './store.ts';
export { type MountMode, type Profile, type ProfileChanges, SWITCHES } from './switches.ts';
