import { existsSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, expect, it } from 'vitest';
import { anchorsOf, inlineCodes, markdownFiles, ROOT, read } from './pages.ts';

type Flag = { readonly char?: string; readonly allowNo?: boolean };
type Commands = Readonly<Record<string, { readonly flags: Readonly<Record<string, Flag>> }>>;

const pages = markdownFiles();

/** Links and pictures within the repository. */
function linksOf(page: string): readonly (readonly [path: string, anchor: string])[] {
  const prose = read(page).replaceAll(/^```[\s\S]*?^```$|`[^`\n]*`/gm, '');
  return [...prose.matchAll(/\]\(([^)\s]*)\)/g)]
    .map(([, link = '']) => link)
    .filter((link) => !/^[a-z]+:/.test(link))
    .map((link) => {
      const [path = '', anchor = ''] = link.split('#');
      return [path === '' ? page : normalize(join(dirname(page), path)), anchor] as const;
    });
}

describe('links', () => {
  it.each(pages)('of %s lead to files and headings', (page) => {
    for (const [path, anchor] of linksOf(page)) {
      expect(existsSync(join(ROOT, path)), `${page}: ${path}`).toBe(true);
      if (anchor !== '') expect([...anchorsOf(read(path))], `${page}: ${path}`).toContain(anchor);
    }
  });

  it('lead from the README to every page of docs/', () => {
    const linked = new Set(linksOf('README.md').map(([path]) => path));
    const all = pages.filter((page) => page.startsWith('docs/') && !page.startsWith('docs/decisions/'));
    expect(all.filter((page) => !linked.has(page))).toEqual([]);
  });
});

/** Pages that say `publish --x` without the name of the program, and mean ours. */
const OURS = [
  'README.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  ...['bench', 'ci', 'config', 'errors', 'library', 'mount-check', 'oci-layout', 'registries', 'scale-out', 'spec'].map(
    (name) => `docs/${name}.md`,
  ),
  'docs/troubleshooting.md',
];

/** Those of npm, and what every program knows. */
const OTHERS = ['--global', '--help'];

describe('flags that are named in the text', () => {
  const { commands } = JSON.parse(read('oclif.manifest.json')) as { readonly commands: Commands };

  const spellings = ([name, { char, allowNo }]: readonly [string, Flag]): readonly string[] => [
    `--${name}`,
    `-${char}`,
    ...(allowNo === true ? [`--no-${name}`] : []),
  ];

  /** Flags that the command does not have; undefined for what is none of our commands. */
  function flagsOf(code: string): readonly string[] | undefined {
    const words = code.replace(/^manifest-publish /, '').split(' ');
    const command = commands[`${words[0]}:${words[1]}`] ?? commands[words[0] ?? ''];
    if (command === undefined) return undefined;
    const known = Object.entries(command.flags).flatMap(spellings);
    const used = words.flatMap((word) => /^\[?(--?[a-z][a-z-]*)/.exec(word)?.[1] ?? []);
    return used.filter((flag) => !known.includes(flag));
  }

  it.each(pages)('by %s exist', (page) => {
    const codes = inlineCodes(read(page)).filter((code) => code.startsWith('manifest-publish ') || OURS.includes(page));
    for (const code of codes) expect(flagsOf(code) ?? [], `${page}: ${code}`).toEqual([]);
  });

  it.each(OURS.filter((page) => page !== 'docs/bench.md'))('by %s alone belong to some command', (page) => {
    const all = new Set(Object.values(commands).flatMap(({ flags }) => Object.entries(flags).flatMap(spellings)));
    const alone = inlineCodes(read(page)).flatMap((code) => /^--[a-z][a-z-]*/.exec(code)?.[0] ?? []);
    expect(alone.filter((flag) => !all.has(flag) && !OTHERS.includes(flag))).toEqual([]);
  });

  it('are found where they do not exist', () => {
    expect(flagsOf('manifest-publish publish T A --expect-platfroms x -t y')).toEqual(['--expect-platfroms']);
    expect(flagsOf('registry serve --sed')).toEqual(['--sed']);
  });
});
