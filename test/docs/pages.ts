import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT: string = fileURLToPath(new URL('../..', import.meta.url));

/** A fenced block, or an indented one (language `indented`), with what stands in it. */
export type Block = { readonly language: string; readonly text: string };

const NOT_OURS: ReadonlySet<string> = new Set(['node_modules', 'lib', 'coverage', 'reports', '.stryker-tmp', '.git']);

/** Every Markdown file of the repository, by its path with slashes. */
export function markdownFiles(folder: string = ROOT): readonly string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter(({ name }) => !NOT_OURS.has(name))
    .flatMap((entry) => {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) return markdownFiles(path);
      return entry.name.endsWith('.md') ? [relative(ROOT, path)] : [];
    });
}

export function read(page: string): string {
  return readFileSync(join(ROOT, page), 'utf8');
}

/** In order. A block of four spaces counts where a line without them is around it. */
export function blocksOf(text: string): readonly Block[] {
  const blocks = text.matchAll(/^```([\w-]*)\n([\s\S]*?)^```$|(?<=\n\n)((?: {4}\S.*\n)+)(?=\n)/gm);
  return [...blocks].map(([, language, fenced, indented]) =>
    indented === undefined
      ? { language: language ?? '', text: fenced ?? '' }
      : { language: 'indented', text: indented.replaceAll(/^ {4}/gm, '') },
  );
}

/** The text between backticks, of which none is in a block. */
export function inlineCodes(text: string): readonly string[] {
  const prose = text.replaceAll(/^```[\s\S]*?^```$/gm, '');
  return [...prose.matchAll(/(?<!`)`([^`]+)`(?!`)/g)].map(([, code = '']) => code.replaceAll(/\s+/g, ' '));
}

/** The anchors of a page, as GitHub makes them from headings. */
export function anchorsOf(text: string): ReadonlySet<string> {
  const prose = text.replaceAll(/^```[\s\S]*?^```$/gm, '');
  const slugs = [...prose.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  );
  // A heading that comes again gets a number.
  return new Set(
    slugs.map((slug, at) => {
      const before = slugs.slice(0, at).filter((other) => other === slug).length;
      return before === 0 ? slug : `${slug}-${before}`;
    }),
  );
}
