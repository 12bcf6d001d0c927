import { Demo } from './demo.ts';
import { Inspect } from './inspect.ts';
import { Publish } from './publish.ts';
import { RegistryServe } from './registry-serve.ts';
import { Verify } from './verify.ts';

/** Every command by its id; oclif reads this table (`strategy: explicit`). */
export const COMMANDS = {
  publish: Publish,
  inspect: Inspect,
  verify: Verify,
  'registry:serve': RegistryServe,
  demo: Demo,
};
