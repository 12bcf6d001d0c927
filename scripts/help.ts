import { CommandHelp, Config, Help, Plugin } from '@oclif/core';
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

/** The commands of lib/ as oclif knows them, read from the classes and not from `oclif.manifest.json`. */
export async function loadPlugin(): Promise<Plugin> {
  const plugin = new Plugin({
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
export async function renderHelp(): Promise<HelpFile> {
  const { topics, commandIDs, name, version, userAgent } = await loadConfig();
  // oclif names the machine that renders; the reader's may be another one.
  const whole = folded((await render([])).replace(userAgent, `${name}/${version}`));
  const help: Record<string, string> = { '': `${whole}\n${MORE}\n` };
  for (const topic of topics) help[topic.name] = await render([topic.name]);
  for (const id of commandIDs) help[id.replaceAll(':', ' ')] = await render(id.split(':'));
  return { name, version, help };
}

/** oclif wraps everything but the sentence on top of the whole. */
function folded(text: string): string {
  const end = text.lastIndexOf(' ', COLUMNS);
  return text.indexOf('\n') <= COLUMNS ? text : `${text.slice(0, end)}\n${text.slice(end + 1)}`;
}

/** A new one each time: rendering changes the ids inside it. */
async function loadConfig(): Promise<Config> {
  const plugin = await loadPlugin();
  return Config.load({ root: ROOT, plugins: new Map([[plugin.name, plugin]]) });
}

/** The summary stands on top already; oclif's option to leave it out drops the first paragraph too. */
class WithoutSummary extends CommandHelp {
  protected override description(): string | undefined {
    return this.command.description === undefined ? undefined : this.wrap(this.command.description);
  }
}

async function render(words: string[]): Promise<string> {
  const lines: string[] = [];
  class Captured extends Help {
    override CommandHelpClass = WithoutSummary;
    protected override log(...texts: string[]): void {
      lines.push(...texts);
    }
  }
  await new Captured(await loadConfig(), { maxWidth: COLUMNS, stripAnsi: true }).showHelp(words);
  return `${lines.join('\n').trimEnd()}\n`;
}
