import type { JournalEntry, RunningRegistry } from '../../src/registry-server/index.ts';

/**
 * What must hold of the requests of every run, at every registry: scenario 7. Each line that is returned names one
 * request that should not have been.
 */
export function logProblems(registry: RunningRegistry): readonly string[] {
  const { journal } = registry;
  const problems = journal.flatMap((entry) => headerProblems(entry).map((problem) => `${nameOf(entry)}: ${problem}`));
  return [...problems, ...locationProblems(journal), ...sessionProblems(registry), ...tagProblems(registry)];
}

function nameOf({ method, path, query }: JournalEntry): string {
  return `${method} ${path}${query === '' ? '' : `?${query}`}`;
}

function headerProblems(entry: JournalEntry): readonly string[] {
  const { headers, method } = entry;
  const writes = method === 'POST' || method === 'PUT' || method === 'PATCH';
  return [
    ...(/chunked/i.test(headers['transfer-encoding'] ?? '') ? ['Transfer-Encoding: chunked'] : []),
    ...(headers['cookie'] === undefined ? [] : ['a cookie']),
    ...(entry.listener === 'storage' && entry.authorization !== 'none' ? ['Authorization to another host'] : []),
    ...(writes && headers['content-length'] === undefined ? ['no Content-Length'] : []),
  ];
}

const SESSION_REQUESTS: readonly string[] = ['uploadPatch', 'uploadPut', 'uploadGet', 'uploadDelete'];

/** Every request to a session goes to a Location that was given, its query untouched; only the digest is appended. */
function locationProblems(journal: readonly JournalEntry[]): readonly string[] {
  const given = new Set(journal.map(({ location }) => location).filter((location) => location !== undefined));
  const known = new Set([...given].map((location) => location.replace(/^https?:\/\/[^/]*/, '')));
  return journal
    .filter(({ operation }) => SESSION_REQUESTS.includes(operation))
    .filter((entry) => {
      const asked = entry.query === '' ? entry.path : `${entry.path}?${entry.query}`;
      return !known.has(asked.replace(/[?&]digest=[^&]*$/, ''));
    })
    .map((entry) => `${nameOf(entry)}: not a Location that was given`);
}

/** Each session that a 202 opened is used or cancelled, unless the registry takes no cancellations. */
function sessionProblems(registry: RunningRegistry): readonly string[] {
  const barred = registry.profile.upload.cancel !== '204';
  const opened = registry.journal.filter(
    ({ operation, status }) => status === 202 && (operation === 'mount' || operation === 'uploadPost'),
  );
  const idle = opened.filter(({ location = '' }) => {
    const id = location.replace(/\?.*$/, '').split('/').at(-1) ?? '';
    return !registry.journal.some(
      ({ operation, reference }) => reference === id && SESSION_REQUESTS.includes(operation),
    );
  });
  if (barred) {
    // One try teaches that; from then on asking again would be a waste.
    const cancelled = registry.journal.filter(
      ({ operation, status }) => operation === 'uploadDelete' && status === Number(registry.profile.upload.cancel),
    ).length;
    return cancelled > 2 ? [`${cancelled} cancellations where none is taken`] : [];
  }
  // distribution 2.8 knows no Location but its newest, which a broken connection keeps from the client.
  const tried = registry.journal.filter(
    ({ operation, status }) => operation === 'uploadDelete' && status === 404,
  ).length;
  const left = Math.max(0, registry.openSessions() - tried);
  return [
    ...idle.map((entry) => `${nameOf(entry)}: its session was neither used nor cancelled`),
    ...(left === 0 ? [] : [`${left} sessions were left open`]),
  ];
}

/** Children by digest, the index by tag, once, and complete. */
function tagProblems(registry: RunningRegistry): readonly string[] {
  const puts = registry.journal.filter(({ operation }) => operation === 'manifestPut');
  const byTag = puts.filter(({ reference }) => !reference.startsWith('sha256:'));
  const names = new Set(byTag.map(({ reference }) => reference));
  const moves = registry.tagMoves.filter(({ from, to }) => from !== to);
  return [
    ...(names.size > 1 ? [`manifests were put by several tags: ${[...names].join(', ')}`] : []),
    ...(moves.length > 1 ? ['the tag moved more than once'] : []),
    ...registry.tagMoves.flatMap(({ missing }) =>
      missing.length === 0 ? [] : ['the tag moved to something incomplete'],
    ),
  ];
}

/** A body that taught what the registry takes: refused for its size or form, or cut off. */
export type Lesson = { readonly request: string; readonly bytes: number; readonly answer: string };

/** All of them, in order. Where every answer to a commit is lost, a cut says nothing of sizes. */
export function lessonsOf(registry: RunningRegistry): readonly Lesson[] {
  if (/retry404|loseAnswer/.test(registry.profile.upload.commit)) return [];
  return registry.journal
    .filter(({ operation }) => operation === 'uploadPut' || operation === 'uploadPatch')
    .filter(({ status, headers }) => {
      const refused = status === undefined || (status >= 400 && status !== 401 && status !== 429);
      return refused && Number(headers['content-length'] ?? 0) > 0;
    })
    .map(({ method, headers, status }) => ({
      request: method,
      bytes: Number(headers['content-length']),
      answer: status === undefined ? 'cut' : String(status),
    }));
}

/** One request for each size tried is all that learning may cost; bodies up to `small` bytes wait for no lesson. */
export function lessonProblems(lessons: readonly Lesson[], small: number): readonly string[] {
  const counts = new Map<string, number>();
  for (const { request, bytes, answer } of lessons) {
    if (bytes <= small) continue;
    const key = `${request} of ${bytes} bytes, ${answer}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return [...counts].filter(([, count]) => count > 1).map(([key, count]) => `learnt ${count} times: ${key}`);
}
