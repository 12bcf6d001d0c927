import { PublishError } from '../errors.ts';
import { isLayoutHost, parseReference, type Reference } from '../model/reference.ts';
import { MOUNT_VERDICTS, type MountCheck, type MountVerdict } from '../publish/mount-check-report.ts';
import { usage } from './settings.ts';

/** `--expect` */
export function mountExpectation(text: string | undefined): MountVerdict | undefined {
  if (text === undefined) return undefined;
  const verdict = MOUNT_VERDICTS.find((candidate) => candidate === text);
  if (verdict !== undefined) return verdict;
  throw usage(`--expect must be one of ${MOUNT_VERDICTS.join(', ')}`, 'Write for example --expect=existence.');
}

/**
 * The two repositories, which a mount needs to be two of one registry.
 *
 * @throws PublishError `USAGE_INVALID`, `REFERENCE_INVALID`
 */
export function oneRegistry(
  targetText: string,
  sourceText: string,
): { readonly target: Reference; readonly source: Reference } {
  const target = parseReference(targetText);
  const source = parseReference(sourceText);
  if (isLayoutHost(target.host)) {
    throw usage(`${target.host} is a folder, which mounts nothing`, 'Name two repositories of one registry.');
  }
  if (target.host !== source.host) {
    throw usage(
      `mounts work within one registry: ${target.host} and ${source.host} are two`,
      `Name a source of ${target.host}; publish copies from other registries without asking for a mount.`,
    );
  }
  if (target.repository === source.repository) {
    throw usage(
      `${target.host}/${target.repository} is both target and source, where nothing needs to be mounted`,
      'Name another repository of the same registry as the source.',
    );
  }
  return { target, source };
}

/** Why the command does not end well, if so: nothing to tell, a registry that contradicts itself, another verdict. */
export function mountFailure(check: MountCheck, expected: MountVerdict | undefined): PublishError | undefined {
  const { target, verdict, unknown } = check;
  if (unknown !== undefined) {
    return unknown.lied
      ? failure('PROTOCOL_VIOLATED', check, unknown.because, 'Trust none of its mounts: publish looks for every blob.')
      : failure(
          'REGISTRY_FAILED',
          check,
          `could not tell how ${target} answers mounts: ${unknown.because}`,
          'Check that the login may read the source repository and push to the target; publish copies instead.',
        );
  }
  if (expected === undefined || verdict === expected) return undefined;
  if (expected === 'mounts' && verdict !== 'never') return undefined;
  if (verdict === 'mounts' && (expected === 'existence' || expected === 'referenced')) {
    const what = `${target} mounts what a manifest names; whether it has to be named was not asked`;
    return failure('REGISTRY_FAILED', check, what, 'Add --write, which asks with a blob that no manifest names.');
  }
  const hint = 'See the table for what was answered; leave --expect out to be told only.';
  return failure('VERIFY_FAILED', check, `${target}: the verdict is ${verdict}, not ${expected}`, hint);
}

function failure(
  code: 'PROTOCOL_VIOLATED' | 'REGISTRY_FAILED' | 'VERIFY_FAILED',
  { target }: MountCheck,
  message: string,
  hint: string,
): PublishError {
  const slash = target.indexOf('/');
  const registry = target.slice(0, slash);
  const text = message.includes(target) ? message : `${target}: ${message}`;
  return new PublishError(code, text, hint, { side: 'target', registry, repository: target.slice(slash + 1) });
}
