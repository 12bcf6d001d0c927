import { createServer } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { FaultRule, RunningRegistry } from '../../src/registry-server/index.ts';
import { emptyFolder, variables } from '../cli/program.ts';
import { makeImage, putBuilt } from '../helpers/images.ts';
import { runProgram } from '../helpers/program.ts';
import { startRegistry } from '../helpers/registry.ts';
import { closeAll, listen } from '../http/fixture.ts';
import { ALWAYS, COPIED } from './matrix-case.ts';

/**
 * The built program at a registry that takes a request and never answers it: `--timeout` must end the process, whatever
 * it waits for. That silence itself ends a run, after half a minute and more, is row 7 of the matrix, in which the
 * time-outs are short.
 */

/** Long enough to come to the silent request on a busy machine, in ms. */
const TIMEOUT = 2_500;

/** From there to the end of the process: cancelling a session may take 5 s, in ms. */
const GRACE = 8_000;

/** Longer than both, in ms: a process that hangs is ended by the test. */
const LIMIT = 30_000;

let folder: string;
let registry: RunningRegistry;

beforeEach(async () => {
  folder = emptyFolder();
  registry = await startRegistry();
  for (const architecture of ['amd64', 'arm64']) {
    putBuilt(registry, `t/${architecture}`, makeImage(architecture, { platform: { architecture, os: 'linux' } }), '1');
  }
});

afterEach(async () => {
  await registry.close();
  await closeAll();
});

async function publish(host: string) {
  const words = ['publish', `${host}/t/all:1`, ...['amd64', 'arm64'].map((name) => `${host}/t/${name}:1`)];
  const began = performance.now();
  const finished = await runProgram([...words, '--timeout', `${TIMEOUT}ms`], {
    folder,
    env: variables(folder),
    timeout: LIMIT,
  });
  return { ...finished, took: performance.now() - began };
}

describe('a registry that falls silent', () => {
  it.each<[string, Omit<FaultRule, 'action'>, object?]>([
    ['GET of the target tag', { operation: 'manifestGet', repository: 't/all' }],
    ['GET of a source', { operation: 'manifestGet', repository: 't/arm64' }],
    ['GET of a config', { operation: 'blobGet' }],
    ['HEAD of a blob', { operation: 'blobHead', repository: 't/all' }],
    ['mount', { operation: 'mount' }],
    ['POST of an upload', { operation: ['mount', 'uploadPost'] }],
    ['PUT of a blob', { operation: 'uploadPut' }, COPIED],
    ['PUT of a blob, and its cancellation', { operation: ['uploadPut', 'uploadDelete'] }, COPIED],
    ['PUT of a child', { operation: 'manifestPut', path: /sha256:/ }],
    ['PUT of the tag', { operation: 'manifestPut', path: /\/1$/ }],
    ['token', { operation: 'token' }, { auth: { scheme: 'bearer', anonymousPull: false } }],
  ])('at the %s does not keep the process', async (_what, rule, profile = {}) => {
    registry.configure(profile);
    registry.addFault({ ...rule, times: ALWAYS, action: { kind: 'stall' } });
    const { exitCode, stderr, took } = await publish(registry.host);
    expect(stderr).toContain('TIMED_OUT (exit 5)');
    expect(exitCode).toBe(5);
    expect(took).toBeLessThan(TIMEOUT + GRACE);
    expect(registry.tagOf('t/all', '1')).toBeUndefined();
  });

  it('from the first byte on does not keep the process', async () => {
    let connections = 0;
    const nobody = { requests: [], connections: () => connections, open: () => 0 };
    const { host } = await listen(
      createServer(() => {
        connections += 1;
      }),
      nobody,
    );
    const { exitCode, stderr, took } = await publish(host);
    expect(stderr).toContain('TIMED_OUT (exit 5)');
    expect(exitCode).toBe(5);
    expect(connections).toBeGreaterThan(0);
    expect(took).toBeLessThan(TIMEOUT + GRACE);
  });
});
