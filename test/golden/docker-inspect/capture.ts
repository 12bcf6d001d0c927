// Makes the files beside this one anew: what the real docker client prints. Run in the root of the repository, with
// docker 28 or later on PATH:
//   node scripts/run-ts.js test/golden/docker-inspect/capture.ts
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startRegistry } from '../../../src/registry-server/index.ts';
import { FORMS, HOST, STEPS, seedForms, wordsFor } from '../../cli/docker-forms.ts';

const registry = await startRegistry();
const config = await mkdtemp(join(tmpdir(), 'docker-'));

async function docker(words: readonly string[]): Promise<string> {
  const env = { PATH: String(process.env['PATH']), HOME: config, DOCKER_CONFIG: config };
  const insecure = words[0] === 'annotate' ? [] : ['--insecure'];
  const { stdout } = await promisify(execFile)('docker', ['manifest', ...words, ...insecure], { env });
  return stdout;
}

seedForms(registry);
for (const words of STEPS) await docker(wordsFor(registry, words));
for (const { name, words } of FORMS) {
  const text = await docker(wordsFor(registry, words));
  await writeFile(join('test', 'golden', 'docker-inspect', `${name}.txt`), text.replaceAll(registry.host, HOST));
}
await registry.close();
await rm(config, { recursive: true });
