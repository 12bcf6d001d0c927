// A process that changes drafts, for tests that run several of them or kill them.
//   FOLDER notes KEY COUNT   adds so many annotations, one change each
//   FOLDER counts            changes for ever, with a number that grows by one; prints each number once it is there
import { argv, stdout } from 'node:process';
import { amendDraft } from '../../src/store/amend.ts';
import { annotateDraft } from '../../src/store/annotate.ts';
import type { StoredDraft } from '../../src/store/draft.ts';
import { imageEntry, linux, storeIn } from './drafts.ts';

export const LIST = 'docker.io/acme/app:1';
export const SOURCE = 'docker.io/acme/a:1';

const [, , folder = '', work, key = '', count = '0'] = argv;

/** What `create --amend` does: reads the source, and many others every second time. */
function created(current: StoredDraft | undefined, number: number): StoredDraft {
  const others = number % 4 === 0 ? 30 : 0;
  const read = [SOURCE, ...Array.from({ length: others }, (_, place) => `docker.io/acme/b${place}:1`)].map(
    (reference) => imageEntry(reference, linux('amd64'), { seed: `${reference} ${number}` }),
  );
  const bytes = new Map(read.flatMap((one) => [...one.bytes]));
  const base = others > 0 ? current : withoutOthers(current);
  return amendDraft(
    base,
    LIST,
    read.map(({ entry }) => entry),
    bytes,
  ).stored;
}

function withoutOthers(current: StoredDraft | undefined): StoredDraft | undefined {
  if (current === undefined) return undefined;
  const entries = current.draft.entries.filter(({ reference }) => reference === SOURCE);
  return { ...current, draft: { ...current.draft, entries } };
}

function annotated(stored: StoredDraft, name: string, value: string): StoredDraft {
  const entry = { source: SOURCE, shown: { list: LIST, source: SOURCE } };
  const { draft } = annotateDraft(stored.draft, entry, { platform: {}, annotations: { [name]: value } });
  return { ...stored, draft };
}

/** The number that the draft has reached; 0 when there is none. */
export function numberOf(stored: StoredDraft | undefined): number {
  return Number(stored?.draft.entries[0]?.children[0]?.changes?.annotations?.['n'] ?? 0);
}

if (work === 'notes') {
  const store = storeIn(folder);
  for (let place = 0; place < Number(count); place++) {
    await store.change(LIST, async (current) => annotated(current ?? created(undefined, 1), `${key}${place}`, ''));
  }
}
if (work === 'counts') {
  const store = storeIn(folder);
  for (;;) {
    let number = 0;
    await store.change(LIST, async (current) => {
      number = numberOf(current) + 1;
      return annotated(
        number % 2 === 1 || current === undefined ? created(current, number) : current,
        'n',
        `${number}`,
      );
    });
    stdout.write(`${number}\n`);
  }
}
