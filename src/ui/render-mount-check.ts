import type { MountCheck, MountStep } from '../publish/mount-check-report.ts';
import { digestCell } from './labels.ts';
import { type Cell, type Column, tableLines } from './table.ts';
import { textWidth, untrusted } from './text.ts';
import { page, paint, type Style, type Theme } from './theme.ts';

const COLUMNS: readonly Column[] = [
  { title: '#', align: 'right', drop: 2 },
  { title: 'METHOD' },
  { title: 'WHAT' },
  { title: 'REPOSITORY', drop: 1, shrink: true },
  { title: 'STATUS' },
  { title: 'MEANING', shrink: true },
];

/** Paragraphs are broken to this many columns where the stream has no width of its own. */
const PARAGRAPH = 100;

/** What `mount-check` found, for stdout: every request, the verdict, and what follows from it. */
export function renderMountCheck(check: MountCheck, theme: Theme): string {
  const { verdict, unknown, meaning, spec, publish, registry, left, notes } = check;
  const told = verdict === 'unknown' ? `could not tell: ${untrusted(unknown?.because ?? '')}` : verdict;
  const { kind, signs } = registry;
  return page(
    [
      ...tableLines(COLUMNS, check.steps.map(row), theme, ''),
      '',
      ...paragraph('verdict', told, theme, styleOf(verdict)),
      ...paragraph('', meaning, theme),
      ...paragraph('', spec, theme),
      ...paragraph('publish', publish, theme),
      ...paragraph('registry', [...(kind === undefined ? [] : [kind]), ...signs].join('; '), theme),
      ...notes.flatMap((note) => paragraph('note', note, theme)),
      ...leftLines(left, theme),
    ],
    theme,
  );
}

function row({ step, method, what, repository, status, meaning }: MountStep): readonly Cell[] {
  return [String(step), method, what, repository, status === undefined ? '-' : String(status), meaning];
}

function styleOf(verdict: MountCheck['verdict']): Style {
  if (verdict === 'unknown') return 'bad';
  return verdict === 'never' ? 'warn' : 'good';
}

function leftLines(left: MountCheck['left'], theme: Theme): readonly string[] {
  if (left.length === 0) return [];
  const rows = left.map(({ what, repository, digest }) => [what, digestCell(digest), repository]);
  return [
    ...paragraph('left', 'written and not taken away:', theme),
    ...tableLines([{ title: '' }, { title: '' }, { title: '', shrink: true }], rows, theme, INDENT),
  ];
}

const LABEL = 10;
const INDENT = ' '.repeat(LABEL);

/** A label and its text beside it, broken between words. */
function paragraph(label: string, text: string, theme: Theme, style?: Style): readonly string[] {
  const room = Math.max(20, Math.min(theme.width, PARAGRAPH) - LABEL);
  const lines: string[] = [];
  for (const word of untrusted(text, 2000).split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && textWidth(last) + 1 + textWidth(word) <= room)
      lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines.map((line, at) => {
    const head = at === 0 ? paint(theme, 'quiet', label) + ' '.repeat(LABEL - label.length) : INDENT;
    return head + paint(theme, style, line);
  });
}
