import { isLayoutHost } from '../model/reference.ts';
import type { Verification } from '../publish/findings.ts';
import { formatBytes, plural } from './format.ts';
import { digestCell } from './labels.ts';
import { tableLines } from './table.ts';
import { untrusted } from './text.ts';
import { flow, page, paint, symbols, type Theme } from './theme.ts';

/** What `verify` found, for stdout: one line of judgement, what was looked at, and every problem. */
export function renderVerification(verification: Verification, theme: Theme): string {
  const { reference, digest, deep, manifests, blobs, skipped, bytesRead, problems } = verification;
  const { ok, bad } = symbols(theme);
  const good = problems.length === 0;
  const judgement = good ? `${ok} verified` : `${bad} broken`;
  const name = untrusted(reference.endsWith(`@${digest}`) ? reference : `${reference}@${digest}`);
  const head = `${paint(theme, good ? 'good' : 'bad', judgement)} ${name}${good ? '' : `   ${plural(problems.length, 'problem')}`}`;
  const isLocal = isLayoutHost(reference);
  const facts = [
    `${plural(manifests, 'manifest')} read and hashed`,
    deep
      ? `${plural(blobs, 'blob')} ${isLocal ? 'read' : 'downloaded'} and hashed (${formatBytes(bytesRead)})`
      : `${plural(blobs, 'blob')} ${isLocal ? 'looked for, not read' : 'asked for, not downloaded'}`,
    ...(skipped > 0 ? [`${plural(skipped, 'foreign layer')} skipped`] : []),
  ];
  const rows = problems.map((problem) => [digestCell(problem.digest), problem.what]);
  return page(
    [head, ...flow(facts, theme, '  '), ...tableLines([{ title: '' }, { title: '', shrink: true }], rows, theme)],
    theme,
  );
}
