import { argv, env } from 'node:process';
import { ROOT } from '../scripts/root.ts';
import { parseArguments, USAGE } from './arguments.ts';
import { BenchError } from './errors.ts';
import { measureMemory } from './main-memory.ts';
import { measureTable } from './main-table.ts';
import { allPeers, findPeers } from './peers.ts';
import { createFinder } from './tools.ts';

// `npm run bench`: how long others and we take for the same job, and how much they ask of the registry.

const say = (line: string) => void process.stdout.write(`${line}\n`);

/** @returns the exit code */
async function main(): Promise<number> {
  const everyone = allPeers(ROOT);
  const asked = parseArguments(
    argv.slice(2),
    everyone.map((peer) => peer.id),
  );
  if (asked === 'help') {
    say(USAGE);
    return 0;
  }
  const path = env['PATH'] ?? '';
  const find = createFinder(path);
  const wanted = everyone.filter((peer) => asked.only?.includes(peer.id) ?? true);
  const { found, absent, hints } = await findPeers(wanted, find);
  for (const hint of hints) say(`not installed, so not measured: ${hint}`);
  const interrupted = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    process.once(name, () => interrupted.abort(new BenchError(`ended by ${name}`)));
  }
  const options = {
    root: ROOT,
    path,
    find,
    timeoutSeconds: asked.timeoutSeconds,
    signal: interrupted.signal,
    peers: found,
    absent,
    asked,
    say,
    now: () => new Date(),
  };
  return asked.mode === 'memory' ? await measureMemory(options) : await measureTable(options);
}

try {
  process.exitCode = await main();
} catch (error) {
  // A wrong option, no registry, an interruption: one line for a person; the rest of what can go wrong shows its stack.
  if (!(error instanceof BenchError)) throw error;
  say(error.message);
  process.exitCode = 2;
}
