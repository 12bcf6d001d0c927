import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { RunningRegistry } from '../../src/registry-server/index.ts';
import { seedImage } from '../helpers/images.ts';
import { type Finished, run } from '../helpers/processes.ts';
import { requests, withRegistry } from '../helpers/registry.ts';
import { BIN, emptyFolder, variables } from './program.ts';

/** Runs a check and interrupts it once `reached`. */
async function interrupted(
  registry: RunningRegistry,
  flags: readonly string[],
  reached: () => boolean,
): Promise<Finished> {
  const folder = emptyFolder();
  const controller = new AbortController();
  const words = ['mount-check', `${registry.host}/debian/debian`, `${registry.host}/debian/amd64:bullseye`, ...flags];
  const running = run(process.execPath, [BIN, ...words], {
    cwd: folder,
    env: variables(folder),
    signal: controller.signal,
    kill: 'SIGINT',
  });
  const deadline = Date.now() + 20_000;
  while (!reached() && Date.now() < deadline) await sleep(5);
  controller.abort();
  return running;
}

describe('an interrupted mount-check', () => {
  it('waits for the answer to a mount that was sent, and cancels the session it opens', () =>
    withRegistry({ mount: { mode: 'ignore' } }, async (registry) => {
      seedImage(registry, 'debian/amd64', 'bullseye');
      registry.addFault({ operation: 'mount', action: { kind: 'delay', milliseconds: 1000 } });
      const sent = () => requests(registry, 'mount').length === 1;
      const { exitCode, stdout, stderr } = await interrupted(registry, [], sent);
      expect(exitCode, stderr).toBe(130);
      expect(stdout).toBe('');
      expect(requests(registry, 'mount')).toHaveLength(1);
      expect(registry.openSessions()).toBe(0);
    }));

  it('cancels an upload, says what may be left, and writes no manifest', () =>
    withRegistry({ upload: { commit: 'slow(60000)' } }, async (registry) => {
      seedImage(registry, 'debian/amd64', 'bullseye');
      const sent = () => requests(registry, 'uploadPut').length === 1;
      const { exitCode, stderr } = await interrupted(registry, ['--write'], sent);
      expect(exitCode, stderr).toBe(130);
      expect(stderr).toMatch(/warning: mount-check may have left the blob sha256:\w+ in .*debian\/amd64/);
      expect(requests(registry, 'manifestPut', 'mount')).toEqual([]);
      expect(registry.openSessions()).toBe(0);
    }));
});
