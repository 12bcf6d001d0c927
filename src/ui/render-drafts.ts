import { type Column, renderTable } from './table.ts';
import type { Theme } from './theme.ts';

/** One draft as `ls` tells it. */
export type DraftLine = {
  readonly reference: string;
  /** Sources, as they were given. */
  readonly entries: number;
  /** Of its images, in the order of the list; an image that tells none has none here. */
  readonly platforms: readonly string[];
};

const COLUMNS: readonly Column[] = [
  { title: 'LIST', shrink: true },
  { title: 'ENTRIES', align: 'right' },
  { title: 'PLATFORMS', shrink: true },
];

/** The drafts of this machine; nothing at all when there are none, so that scripts read no head as a draft. */
export function renderDrafts(drafts: readonly DraftLine[], theme: Theme): string {
  if (drafts.length === 0) return '';
  const rows = drafts.map(({ reference, entries, platforms }) => [reference, String(entries), platforms.join(', ')]);
  return renderTable(COLUMNS, rows, theme);
}
