import { Annotate } from './annotate.ts';
import { Completion } from './completion.ts';
import { Create } from './create.ts';
import { Demo } from './demo.ts';
import { DockerPluginInstall } from './docker-plugin-install.ts';
import { Inspect } from './inspect.ts';
import { Ls } from './ls.ts';
import { MountCheck } from './mount-check.ts';
import { Publish } from './publish.ts';
import { Push } from './push.ts';
import { RegistryServe } from './registry-serve.ts';
import { ReportMerge } from './report-merge.ts';
import { Rm } from './rm.ts';
import { Verify } from './verify.ts';

/** Every command by its id, for oclif's tools (`strategy: explicit`). The program itself goes by `run.ts`. */
export const COMMANDS = {
  publish: Publish,
  create: Create,
  annotate: Annotate,
  push: Push,
  inspect: Inspect,
  rm: Rm,
  ls: Ls,
  verify: Verify,
  'mount-check': MountCheck,
  'registry:serve': RegistryServe,
  'report:merge': ReportMerge,
  completion: Completion,
  'docker-plugin:install': DockerPluginInstall,
  demo: Demo,
};
