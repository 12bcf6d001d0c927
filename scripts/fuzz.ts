import process, { argv, stderr, stdout } from 'node:process';
import { parseArgs } from 'node:util';
import { fuzz, measureGrowth } from '../test/fuzz/run.ts';
import { TARGETS } from '../test/fuzz/targets/index.ts';

// Puts every parser of foreign text through many generated texts, seeded: the same seed brings the same texts.

const { values } = parseArgs({
  args: argv.slice(2),
  options: {
    inputs: { type: 'string', default: '1000000' },
    seed: { type: 'string', default: '20261130' },
    parser: { type: 'string', multiple: true, default: [] },
    list: { type: 'boolean', default: false },
  },
});
const [inputs, seed] = [values.inputs, values.seed].map(Number);
const unknown = values.parser.find((name) => TARGETS.every((target) => target.name !== name));
if (values.list) {
  for (const { name } of TARGETS) stdout.write(`${name}\n`);
} else if (inputs === undefined || seed === undefined || !(inputs > 0) || Number.isNaN(seed) || unknown !== undefined) {
  stderr.write('usage: npm run fuzz -- [--inputs N] [--seed N] [--parser NAME]... | --list\n');
  process.exitCode = 2;
} else {
  stdout.write(`seed ${seed}, ${inputs} texts for each parser\n`);
  for (const target of TARGETS) {
    if (values.parser.length > 0 && !values.parser.includes(target.name)) continue;
    const start = process.cpuUsage();
    const outcome = await fuzz(target, inputs, seed);
    const seconds = (process.cpuUsage(start).user / 1e6).toFixed(1);
    stdout.write(`${target.name}: ${outcome.inputs} texts, ${outcome.taken} taken, ${seconds} s of work\n`);
    const slow = await measureGrowth(target);
    for (const { shape, short, long } of slow) {
      stdout.write(`  SLOW ${JSON.stringify(shape)}: 8 KiB ${short.toFixed(1)} ms, 64 KiB ${long.toFixed(1)} ms\n`);
      process.exitCode = 1;
    }
    if (outcome.finding === undefined) continue;
    const { input, error } = outcome.finding;
    stdout.write(
      `  FOUND ${JSON.stringify(input).slice(0, 2000)}\n  ${error instanceof Error ? error.stack : String(error)}\n`,
    );
    process.exitCode = 1;
  }
}
