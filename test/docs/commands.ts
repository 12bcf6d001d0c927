import { parseAllDocuments } from 'yaml';
import { blocksOf, inlineCodes, read } from './pages.ts';

/** Languages of blocks that other tests compile and run. */
const PROGRAMS = ['js', 'ts'];

/** How the first word of a command begins; a block without a language that begins with another word shows output. */
const COMMAND = /^(?:(?:manifest-publish|npx|npm|node|docker|aws|source|bash|sh|mkdir) |(?:export )?\w+=)/;

/** What a page shows besides its text. */
export type Shown = {
  readonly commands: readonly string[];
  /** Blocks that are no commands, by their first line. */
  readonly outputs: readonly string[];
  readonly yaml: readonly string[];
  readonly json: readonly string[];
};

/** Reads a page. @param inline whether what stands between backticks counts, too */
export function shownBy(page: string, inline: boolean): Shown {
  const text = read(page);
  const commands: string[] = [];
  const outputs: string[] = [];
  const yaml: string[] = [];
  const json: string[] = [];
  for (const block of blocksOf(text)) {
    const { language } = block;
    if (language === 'yaml') {
      yaml.push(block.text);
      commands.push(...scriptsIn(block.text));
    } else if (language === 'json') json.push(block.text);
    else if (!PROGRAMS.includes(language)) {
      const lines = commandLines(language, block.text);
      commands.push(...lines);
      if (lines.length === 0) outputs.push(block.text.split('\n')[0] ?? '');
    }
  }
  if (inline) commands.push(...inlineCodes(text.replaceAll('\\|', '|')).filter((code) => COMMAND.test(code)));
  return { commands, outputs, yaml, json };
}

/** Lines as a shell reads them; of a dialogue what is typed, of a comparison what is new. */
function commandLines(language: string, text: string): readonly string[] {
  const lines = text
    .trimEnd()
    .replaceAll('\\\n+', '\\\n')
    .split(/(?<!\\)\n/);
  const marked = (mark: string) => lines.filter((line) => line.startsWith(mark)).map((line) => line.slice(mark.length));
  if (language === 'diff') return marked('+');
  if (lines[0]?.startsWith('$ ')) return marked('$ ');
  return COMMAND.test(lines[0] ?? '') ? lines : [];
}

/** What runners would give to a shell: `run:`, `script:` of GitLab and Azure Pipelines. */
function scriptsIn(yaml: string): readonly string[] {
  return parseAllDocuments(yaml).flatMap((document) => scripts(document.toJS()));
}

function scripts(value: unknown): readonly string[] {
  if (Array.isArray(value)) return value.flatMap(scripts);
  if (value === null || typeof value !== 'object') return [];
  return Object.entries(value).flatMap(([key, inner]) => {
    if (key !== 'run' && key !== 'script') return scripts(inner);
    return (Array.isArray(inner) ? inner : [inner]).map((script) => String(script).trimEnd());
  });
}
