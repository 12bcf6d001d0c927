import { dirname } from 'node:path';
import { argv } from 'node:process';

/** The folder of package.json. `run-ts.js` puts the path of the script that it runs into `argv[1]`. */
export const ROOT: string = dirname(dirname(argv[1] ?? ''));
