import { join } from 'node:path';
import { rolldown } from 'rolldown';
import { floorFile } from './peers.ts';

/** Makes a file of bench/floor.ts that Node 20 runs, so that its start-up is a plain program's. */
export async function buildFloor(root: string): Promise<void> {
  const bundle = await rolldown({ input: join(root, 'bench', 'floor.ts'), platform: 'node', logLevel: 'warn' });
  await bundle.write({ file: floorFile(root), format: 'esm' });
  await bundle.close();
}
