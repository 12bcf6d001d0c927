import { type Loaders, main } from '../cli/main.ts';

/** Every command of {@link COMMANDS} by its id, each loaded only when it is asked for. */
export const LOADERS: Loaders = {
  publish: async () => (await import('./publish.ts')).Publish,
  create: async () => (await import('./create.ts')).Create,
  annotate: async () => (await import('./annotate.ts')).Annotate,
  push: async () => (await import('./push.ts')).Push,
  inspect: async () => (await import('./inspect.ts')).Inspect,
  rm: async () => (await import('./rm.ts')).Rm,
  ls: async () => (await import('./ls.ts')).Ls,
  verify: async () => (await import('./verify.ts')).Verify,
  'mount-check': async () => (await import('./mount-check.ts')).MountCheck,
  'registry:serve': async () => (await import('./registry-serve.ts')).RegistryServe,
  'report:merge': async () => (await import('./report-merge.ts')).ReportMerge,
  completion: async () => (await import('./completion.ts')).Completion,
  'docker-plugin:install': async () => (await import('./docker-plugin-install.ts')).DockerPluginInstall,
  demo: async () => (await import('./demo.ts')).Demo,
};

/** The program, for `bin/run.js`. */
export async function run(argv: readonly string[]): Promise<void> {
  await main(argv, LOADERS);
}
