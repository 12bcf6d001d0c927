import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import process, { argv, env, execPath, stderr, stdout } from 'node:process';
import { ROOT } from './root.ts';

// Breaks the modules of each group on purpose, one small change after the other, and tells which changes no test sees:
// `npm run mutation [-- GROUP...]`. Fails when a group or the whole falls below the share that stryker.config.mjs asks.

type Status =
  | 'Killed'
  | 'Timeout'
  | 'Survived'
  | 'NoCoverage'
  | 'CompileError'
  | 'RuntimeError'
  | 'Ignored'
  | 'Pending';
type Mutant = {
  readonly status: Status;
  readonly mutatorName: string;
  readonly replacement?: string;
  readonly location: { readonly start: { readonly line: number; readonly column: number } };
};
type Report = {
  readonly thresholds: { readonly low: number };
  readonly files: Readonly<Record<string, { readonly mutants: readonly Mutant[] }>>;
};

const SEEN: readonly Status[] = ['Killed', 'Timeout'];
const UNSEEN: readonly Status[] = ['Survived', 'NoCoverage'];

const known = Object.keys(JSON.parse(readFileSync(join(ROOT, 'scripts', 'mutation-groups.json'), 'utf8')));
const groups = argv.length > 2 ? argv.slice(2) : known;
const wrong = groups.find((group) => !known.includes(group));
if (wrong !== undefined) {
  stderr.write(`usage: npm run mutation [-- ${known.join('|')}...]\n`);
  process.exitCode = 2;
} else {
  process.exitCode = judge(groups.map(mutate));
}

type Score = { readonly name: string; readonly seen: number; readonly unseen: number; readonly least: number };

function mutate(name: string): Score {
  const path = join(ROOT, 'reports', 'mutation', `${name}.json`);
  // An old report must not pass for a run that broke off.
  rmSync(path, { force: true });
  const stryker = join(ROOT, 'node_modules', '@stryker-mutator', 'core', 'bin', 'stryker.js');
  spawnSync(execPath, [stryker, 'run'], { cwd: ROOT, env: { ...env, MUTATION_GROUP: name }, stdio: 'inherit' });
  if (!existsSync(path)) throw new Error(`no report for ${name}: see what Stryker says above`);
  const report: Report = JSON.parse(readFileSync(path, 'utf8'));
  const mutants = Object.values(report.files).flatMap((file) => file.mutants);
  for (const [file, { mutants: own }] of Object.entries(report.files)) {
    for (const { status, location, mutatorName, replacement = '' } of own) {
      if (!UNSEEN.includes(status)) continue;
      const { line, column } = location.start;
      stdout.write(
        `  ${file}:${line}:${column} ${status} ${mutatorName}: ${JSON.stringify(replacement.slice(0, 100))}\n`,
      );
    }
  }
  const count = (among: readonly Status[]) => mutants.filter(({ status }) => among.includes(status)).length;
  return { name, seen: count(SEEN), unseen: count(UNSEEN), least: report.thresholds.low };
}

function judge(scores: readonly Score[]): 0 | 1 {
  const sum = (part: 'seen' | 'unseen') => scores.reduce((total, score) => total + score[part], 0);
  const total: Score = { name: 'total', seen: sum('seen'), unseen: sum('unseen'), least: scores[0]?.least ?? 100 };
  let failed = false;
  for (const { name, seen, unseen, least } of [...scores, total]) {
    const share = (100 * seen) / (seen + unseen);
    if (!(share >= least)) failed = true;
    stdout.write(
      `${name.padEnd(10)} ${seen} of ${seen + unseen} changes seen, ${share.toFixed(1)} % (least ${least} %)\n`,
    );
  }
  return failed ? 1 : 0;
}
