import { type ErrorDocument, PublishError } from '../errors.ts';
import type { PublishReport, TargetOutcome } from '../publish/report.ts';
import { errorDocument } from './render-error.ts';
import { untrusted } from './text.ts';

/**
 * The text that sets outputs of a step, for the end of `$GITHUB_OUTPUT`. Each value stands between two lines that nobody
 * can foresee: what it holds can then set no other output.
 *
 * @param token a text that no other call gives
 * @see https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands, "Multiline strings"
 */
export function renderOutputs(values: Readonly<Record<string, string>>, token: () => string): string {
  return Object.entries(values)
    .map(([name, value]) => {
      const delimiter = delimiterFor(value, token);
      return `${name}<<${delimiter}\n${value}\n${delimiter}\n`;
    })
    .join('');
}

function delimiterFor(value: string, token: () => string): string {
  for (;;) {
    const delimiter = `ends-${token()}`;
    if (!value.includes(delimiter)) return delimiter;
  }
}

/** The runner shows so many errors of a step, and drops the others without a word. */
const ANNOTATIONS = 10;

/**
 * The failure as an annotation of the run. Where several targets failed each gets one of its own, as far as they are shown.
 *
 * @see https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands, "Setting an error message"
 */
export function renderAnnotations(error: unknown): string {
  const { error: told } = errorDocument(error);
  const report = error instanceof PublishError ? (error.report as PublishReport | undefined) : undefined;
  const failed = (report?.lists ?? []).flatMap(({ targets }) => targets.filter(isFailed));
  const lines = failed.length < 2 ? [] : failed.slice(0, ANNOTATIONS - 1).map(targetLine);
  return [errorLine(`${told.code} (exit ${told.exitCode})`, withHint(told)), ...lines].join('');
}

type Failed = Extract<TargetOutcome, { action: 'failed' }>;

/** That a list was not begun is no failure of its own. */
function isFailed(target: TargetOutcome): target is Failed {
  return target.action === 'failed' && target.error.code !== 'NOT_RUN';
}

function targetLine({ reference, error }: Failed): string {
  return errorLine(`${error.code} ${untrusted(reference, 200)}`, untrusted(error.message, 1000));
}

function withHint({ message, hint }: ErrorDocument['error']): string {
  return hint === '' ? message : `${message}\nhint: ${hint}`;
}

function errorLine(title: string, message: string): string {
  return `::error title=${property(`manifest-publish: ${title}`)}::${data(message)}\n`;
}

/** Tells the runner to put stars in the place of a secret, wherever it would show it. */
export function renderMask(secret: string): string {
  return `::add-mask::${data(secret)}\n`;
}

/** Lines that the runner folds together. They must not hold the end of a group. */
export function renderGroup(title: string, lines: string): string {
  return `${groupStart(title)}${lines}${GROUP_END}`;
}

/** @see renderGroup */
export function groupStart(title: string): string {
  return `::group::${data(untrusted(title, 200))}\n`;
}

/** @see renderGroup */
export const GROUP_END = '::endgroup::\n';

/** @see https://github.com/actions/toolkit/blob/main/packages/core/src/command.ts, escapeData */
function data(text: string): string {
  return text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A');
}

function property(text: string): string {
  return data(text).replaceAll(':', '%3A').replaceAll(',', '%2C');
}
