import { Annotate } from './annotate.ts';
import { Create } from './create.ts';
import { Demo } from './demo.ts';
import { Inspect } from './inspect.ts';
import { Ls } from './ls.ts';
import { MountCheck } from './mount-check.ts';
import { Publish } from './publish.ts';
import { Push } from './push.ts';
import { RegistryServe } from './registry-serve.ts';
import { Rm } from './rm.ts';
import { Verify } from './verify.ts';

/** Every command by its id; oclif reads this table (`strategy: explicit`). */
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
  demo: Demo,
};
