import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CommandHelp, Config, Help, Plugin } from '@oclif/core';
import type { PJSON } from '@oclif/core/interfaces';
import { ROOT } from './root.ts';

/** What `bin/run.js` answers from. Keys of `help` are the words that name a command or topic; '' is the whole. */
export type HelpFile = {
  readonly name: string;
  readonly version: string;
  readonly help: Readonly<Record<string, string>>;
};

/** The width of a terminal that nobody has widened; a pipe has none to ask for. */
const COLUMNS = 80;

const MORE = `Run manifest-publish COMMAND --help for more, or manifest-publish demo to see it
at work.`;

/** Where the bundle is, below the root. */
const LIB = 'lib';

/** The commands of lib/ as oclif knows them, read from the classes and not from `oclif.manifest.json`. */
export async function loadPlugin(lib: string = LIB): Promise<Plugin> {
  const pjson: PJSON = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
  const commands = { strategy: 'explicit', target: `./${lib}/commands.cjs`, identifier: 'COMMANDS' } as const;
  const plugin = new Plugin({
    pjson: { ...pjson, oclif: { ...pjson.oclif, commands } },
    root: ROOT,
    isRoot: true,
    type: 'core',
    ignoreManifest: true,
    errorOnManifestCreate: true,
  });
  await plugin.load();
  return plugin;
}

/** Renders the help of everything with oclif's own help, at a fixed width and without colours. */
export async function renderHelp(lib: string = LIB): Promise<HelpFile> {
  const { topics, commandIDs, name, version, userAgent } = await loadConfig(lib);
  // oclif names the machine that renders; the reader's may be another one.
  const whole = folded((await render([], lib)).replace(userAgent, `${name}/${version}`));
  const help: Record<string, string> = { '': `${whole}\n${MORE}\n` };
  for (const topic of topics) help[topic.name] = await render([topic.name], lib);
  for (const id of commandIDs) help[id.replaceAll(':', ' ')] = await render(id.split(':'), lib);
  return { name, version, help };
}

/** What docker asks of a plugin. Clients before 28.4.1 know no other version of the schema. */
export async function dockerPlugin(lib: string = LIB): Promise<string> {
  const { name, version, pjson } = await loadConfig(lib);
  const { homepage: URL } = pjson as { readonly homepage?: string };
  const ShortDescription = 'Publish multi-arch images from per-architecture repositories';
  return `${JSON.stringify({ SchemaVersion: '0.1.0', Vendor: name, Version: version, ShortDescription, URL })}\n`;
}

/** oclif wraps everything but the sentence on top of the whole. */
function folded(text: string): string {
  const end = text.lastIndexOf(' ', COLUMNS);
  return text.indexOf('\n') <= COLUMNS ? text : `${text.slice(0, end)}\n${text.slice(end + 1)}`;
}

/** A new one each time: rendering changes the ids inside it. */
async function loadConfig(lib: string): Promise<Config> {
  const plugin = await loadPlugin(lib);
  return Config.load({ root: ROOT, plugins: new Map([[plugin.name, plugin]]) });
}

/** The summary stands on top already; oclif's option to leave it out drops the first paragraph too. */
class WithoutSummary extends CommandHelp {
  protected override description(): string | undefined {
    return this.command.description === undefined ? undefined : this.wrap(this.command.description);
  }
}

async function render(words: string[], lib: string): Promise<string> {
  const lines: string[] = [];
  class Captured extends Help {
    override CommandHelpClass = WithoutSummary;
    protected override log(...texts: string[]): void {
      lines.push(...texts);
    }
  }
  await new Captured(await loadConfig(lib), { maxWidth: COLUMNS, stripAnsi: true }).showHelp(words);
  return `${lines.join('\n').trimEnd()}\n`;
}
