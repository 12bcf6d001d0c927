import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { makeFolder } from '../helpers/external-registry.ts';
import { needProgram, run, startServer } from '../helpers/processes.ts';
import { withPeers } from './lane.ts';
import { makeHome, PROGRAM } from './publish-command.ts';

/**
 * The suite of the distribution spec: `go install github.com/opencontainers/distribution-spec/conformance@latest`.
 *
 * @see distribution-spec conformance/README.md
 */
withPeers(['conformance'], 'the OCI conformance suite', () => {
  it('passes against the embedded registry', async () => {
    const folder = await makeFolder();
    const home = await makeHome(folder.path);
    const args = [PROGRAM, 'registry', 'serve', '--port', '0'];
    const registry = await startServer(process.execPath, args, /^(127\.0\.0\.1:\d+)$/m, { env: { HOME: home } });
    try {
      const results = join(folder.path, 'results');
      const done = await run(needProgram('conformance'), [], {
        cwd: folder.path,
        env: { HOME: home, OCI_REGISTRY: registry.found, OCI_TLS: 'disabled', OCI_RESULTS_DIR: results },
      });
      expect(done.exitCode, `${done.stdout}${done.stderr}`).toBe(0);
      const junit = await readFile(join(results, 'junit.xml'), 'utf8');
      const [, tests, failures, errors] =
        /<testsuite [^>]*tests="(\d+)" failures="(\d+)" errors="(\d+)"/.exec(junit) ?? [];
      expect({ failures, errors }).toEqual({ failures: '0', errors: '0' });
      // Most of it is on by default; a run that found nothing to test is no pass.
      expect(Number(tests)).toBeGreaterThan(500);
    } finally {
      await registry.stop();
      await folder.remove();
    }
  });
});
