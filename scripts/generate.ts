import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import process, { argv, stderr } from 'node:process';
import { CONFIG } from '../src/config/schema.ts';
import { SPEC } from '../src/spec/schema.ts';
import { commandPage } from './command-page.ts';
import { errorPage } from './error-page.ts';
import { loadPlugin, renderHelp } from './help.ts';
import { jsonSchema } from './json-schema.ts';
import { thirdPartyNotices } from './notices.ts';
import { ROOT } from './root.ts';

// Writes the files that are made from the sources and committed all the same. With --check nothing is written, and
// a file that is not up to date is an error.

const plugin = await loadPlugin();
const FILES: Readonly<Record<string, string>> = {
  'oclif.manifest.json': json(plugin.manifest),
  'docs/config.schema.json': json({
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Configuration of manifest-publish',
    ...jsonSchema(CONFIG),
  }),
  'docs/spec.schema.json': json({
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Spec files of manifest-publish',
    ...jsonSchema(SPEC),
  }),
  'docs/commands.md': commandPage(await renderHelp()),
  'docs/errors.md': await errorPage(),
  THIRD_PARTY_NOTICES: await thirdPartyNotices(),
};

const check = argv.includes('--check');
for (const [name, text] of Object.entries(FILES)) {
  const path = join(ROOT, name);
  const current = await readFile(path, 'utf8').catch(() => undefined);
  if (current === text) continue;
  if (check) {
    stderr.write(`${name} is not up to date: run npm run generate\n`);
    process.exitCode = 1;
  } else {
    await writeFile(path, text);
    stderr.write(`${name} written\n`);
  }
}

function json(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
