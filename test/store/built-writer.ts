import { join } from 'node:path';
import { rolldown } from 'rolldown';

/** The writer as one file that Node runs: building it anew for every process would take longer than the tests. */
export async function buildWriter(folder: string): Promise<string> {
  const bundle = await rolldown({ input: join(import.meta.dirname, 'writer.ts'), platform: 'node', logLevel: 'warn' });
  const file = join(folder, 'writer.mjs');
  await bundle.write({ file, format: 'esm', codeSplitting: false });
  await bundle.close();
  return file;
}
