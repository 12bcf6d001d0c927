import { execFileSync } from 'node:child_process';
import { describe } from 'vitest';
import { findProgram } from '../helpers/processes.ts';

/** docker's `manifest` commands read OCI manifests since this version; for older ones there are none. */
const DOCKER_MAJOR = 23;

/**
 * A group of tests that needs programs of others. Where one is missing the tests are skipped, and the name of the
 * group says why, so that no report can pass over it in silence.
 *
 * @param programs each by name; `docker 28` is docker of that major version or later
 */
export function withPeers(programs: readonly string[], name: string, tests: () => void): void {
  const lacks = programs.map(lackOf).filter((lack) => lack !== undefined);
  if (lacks.length === 0) describe(name, tests);
  else describe.skip(`${name} (${lacks.join(', ')})`, tests);
}

function lackOf(need: string): string | undefined {
  const [program = '', least = DOCKER_MAJOR] = need.split(' ');
  const path = findProgram(program);
  if (path === undefined) return `${program} is not installed`;
  if (program !== 'docker') return undefined;
  const version = execFileSync(path, ['--version'], { encoding: 'utf8' });
  const major = Number(/version (\d+)\./.exec(version)?.[1] ?? 0);
  return major < Number(least) ? `docker ${major} is too old, ${least} is needed` : undefined;
}
