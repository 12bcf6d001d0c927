import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type RunningRegistry, seedDebian } from '../../src/registry-server/index.ts';
import { type Finished, run } from '../helpers/processes.ts';
import { startRegistry } from '../helpers/registry.ts';
import { BIN, COMPILED, cli, emptyFolder, parsed, variables } from './program.ts';

const TIMEOUT = 20_000;

let registry: RunningRegistry;
let sources: readonly string[];
let tag = 0;
let target: string;

beforeAll(async () => {
  registry = await startRegistry();
  sources = seedDebian(registry)
    .slice(0, 2)
    .map((image) => `${registry.host}/${image.repository}:${image.tag}`);
});

afterAll(() => registry.close());

beforeEach(() => {
  tag += 1;
  target = `${registry.host}/debian/debian:t${tag}`;
});

/** Runs a line of bash in which `mp` is the program. */
function shell(line: string, folder = emptyFolder()): Promise<Finished> {
  const script = `mp() { '${process.execPath}' '${BIN}' "$@"; }\n${line}`;
  return run('/bin/bash', ['-c', script], { cwd: folder, env: variables(folder), timeout: TIMEOUT });
}

/** What lies in a folder that is a home, too. */
function namesIn(folder: string): readonly string[] {
  const names = readdirSync(folder).sort();
  const kept = COMPILED;
  if (kept === undefined) return names;
  expect(readdirSync(join(folder, dirname(kept)))).toEqual([basename(kept)]);
  return names.filter((name) => name !== dirname(kept));
}

const publishWords = () => `publish ${target} ${sources.join(' ')}`;
const published = () => registry.tagOf('debian/debian', `t${tag}`);

describe('a full disk behind stdout', () => {
  it.each([
    ['publish', (): string => publishWords()],
    ['publish --json', (): string => `${publishWords()} --json`],
    ['publish -q', (): string => `${publishWords()} -q`],
  ])('ends %s with 8, and says what was published', async (_, words) => {
    const { exitCode, stderr } = await shell(`mp ${words()} >/dev/full`);
    expect(exitCode).toBe(8);
    expect(stderr).toContain(`error: cannot write to stdout (ENOSPC); what was asked for is published: ${target}@`);
    expect(stderr).toContain(`moved before this: ${target}`);
    expect(stderr.match(/^error:/gm)).toHaveLength(1);
    expect(published()).toBeDefined();
  });

  it.each(['--version', '--help', 'ls --help', 'ls --json', 'registry serve --list-profiles'])(
    'ends %s with 8, and says so',
    async (words) => {
      const { exitCode, stderr } = await shell(`mp ${words} >/dev/full`);
      expect(exitCode).toBe(8);
      expect(stderr).toContain('error: cannot write to stdout (ENOSPC)');
      expect(stderr).not.toContain('    at ');
    },
  );

  it('does not pass for done when the disk takes a part of it', async () => {
    const { exitCode, stderr } = await shell(`ulimit -f 1; mp ${publishWords()} --json -q >out`);
    expect(exitCode, stderr).toBe(8);
    expect(stderr).toContain('cannot write to stdout (EFBIG)');
  });
});

describe('a full disk behind stderr', () => {
  it('does not keep a publish from being done, which ends with 8', async () => {
    const { exitCode, stdout } = await shell(`mp ${publishWords()} 2>/dev/full`);
    expect(exitCode).toBe(8);
    expect(stdout).toBe(`${published()}\n`);
  });

  it.each(['ls >/dev/full', 'ls --json >/dev/full', '--help >/dev/full', 'ls'])('ends %s with 8', async (words) => {
    expect((await shell(`mp ${words} 2>/dev/full`)).exitCode).toBe(8);
  });

  it('leaves a failure its own exit code', async () => {
    expect((await shell('mp ls --nosuch 2>/dev/full')).exitCode).toBe(2);
    expect((await shell('mp ls --nosuch --json >/dev/full 2>/dev/full')).exitCode).toBe(2);
  });

  it.each(['SIGTERM', 'SIGINT'] as const)('lets %s end it', async (signal) => {
    const folder = emptyFolder();
    const script = `exec '${process.execPath}' '${BIN}' registry serve --port 0 2>/dev/full`;
    const child = spawn('/bin/bash', ['-c', script], { cwd: folder, env: variables(folder) });
    await once(child.stdout, 'data');
    child.kill(signal);
    const [code] = await once(child, 'close');
    expect(code).toBe(signal === 'SIGTERM' ? 143 : 130);
  });
});

describe('a program that has nothing left to wait for', () => {
  it('does not pass for done', async () => {
    const folder = emptyFolder();
    const script = join(folder, 'stuck.cjs');
    // The registry answers nothing more, and nothing holds the process open.
    writeFileSync(
      script,
      `const { Server } = require('node:net');
       const { listen } = Server.prototype;
       Server.prototype.listen = function (...args) { this.unref(); return listen.apply(this, args); };`,
    );
    const args = ['--require', script, BIN, 'registry', 'serve', '--port', '0'];
    const { exitCode, stderr } = await run(process.execPath, args, {
      cwd: folder,
      env: variables(folder),
      timeout: TIMEOUT,
    });
    expect(stderr).toContain('internal: ended without a result');
    expect(exitCode).toBe(1);
  });
});

describe('a working folder that has been deleted', () => {
  const gone = (line: string) => shell(`mkdir here; cd here; rmdir ../here; ${line}`);

  it('ends a publish with 8 before anything is asked', async () => {
    const before = registry.journal.length;
    const { exitCode, stderr } = await gone(`mp ${publishWords()}`);
    expect(exitCode).toBe(8);
    expect(stderr).toContain('the working folder has been deleted');
    expect(registry.journal.length).toBe(before);
  });

  it.each(['--version', 'ls', 'registry serve --list-profiles'])('is nothing to %s', async (words) => {
    const { exitCode, stderr } = await gone(`mp ${words}`);
    expect(exitCode, stderr).toBe(0);
  });
});

describe('output files', () => {
  it('named as stdout are written where stdout goes, and the log stays one file', async () => {
    const folder = emptyFolder();
    const line = `{ echo before; mp ${publishWords()} -q --digest-file /dev/stdout --report /dev/stderr; echo after; } >log 2>errors`;
    const { exitCode } = await shell(line, folder);
    expect(exitCode).toBe(0);
    const digest = published();
    expect(readFileSync(join(folder, 'log'), 'utf8')).toBe(`before\n${digest}\n${digest}\nafter\n`);
    expect(JSON.parse(readFileSync(join(folder, 'errors'), 'utf8'))).toMatchObject({ schemaVersion: 1 });
    expect(namesIn(folder)).toEqual(['errors', 'log']);
  });

  it('named by a descriptor are written there', async () => {
    const folder = emptyFolder();
    const { exitCode, stderr } = await shell(`mp ${publishWords()} -q --digest-file /dev/fd/5 5>log`, folder);
    expect(exitCode, stderr).toBe(0);
    expect(readFileSync(join(folder, 'log'), 'utf8')).toBe(`${published()}\n`);
  });

  it('that are what stdout goes to are not taken from it', async () => {
    const folder = emptyFolder();
    const { exitCode, stderr } = await shell(`mp ${publishWords()} -q --digest-file log >log`, folder);
    expect(exitCode, stderr).toBe(0);
    expect(readFileSync(join(folder, 'log'), 'utf8')).toBe(`${published()}\n${published()}\n`);
  });

  it('that cannot be written after a publish end it with 8, which says what was published', async () => {
    const { exitCode, stderr } = await shell(`mp ${publishWords()} -q --report /dev/full`);
    expect(exitCode).toBe(8);
    expect(stderr).toContain('cannot write the file of --report: /dev/full (ENOSPC)');
    expect(stderr).toContain(`what was asked for is published: ${target}@${published()}`);
  });

  it('with --json, tell so in the document', async () => {
    const finished = await shell(`mp ${publishWords()} -q --json --report /dev/full`);
    expect(finished.exitCode).toBe(8);
    expect(parsed(finished)).toMatchObject({ error: { code: 'FILE_FAILED', moved: [target], exitCode: 8 } });
  });

  it('that are one file end it with 2, before anything is asked', async () => {
    const folder = emptyFolder();
    symlinkSync('out', join(folder, 'link'));
    const before = registry.journal.length;
    const { exitCode, stderr } = await shell(`mp ${publishWords()} --digest-file out --report link`, folder);
    expect(exitCode).toBe(2);
    expect(stderr).toContain('--digest-file and --report name one file');
    expect(registry.journal.length).toBe(before);
    expect(namesIn(folder)).toEqual(['link']);
  });

  it('may be where a link leads that leads nowhere yet, and a pipe of the shell', async () => {
    const folder = emptyFolder();
    mkdirSync(join(folder, 'real'));
    symlinkSync('real/digest', join(folder, 'link'));
    const line = `mp ${publishWords()} -q --digest-file link --report >(cat >piped; echo end >>piped); sleep 0.3`;
    const { exitCode, stderr } = await shell(line, folder);
    expect(exitCode, stderr).toBe(0);
    expect(readFileSync(join(folder, 'real/digest'), 'utf8')).toBe(`${published()}\n`);
    expect(lstatSync(join(folder, 'link')).isSymbolicLink()).toBe(true);
    expect(readFileSync(join(folder, 'piped'), 'utf8')).toMatch(/^\{[\s\S]*\}\nend\n$/);
  });

  it('named as a pipe that nobody reads end it with 8', async () => {
    const { exitCode, stderr } = await shell(`mkfifo pipe; mp ${publishWords()} --report pipe`);
    expect(exitCode).toBe(8);
    expect(stderr).toContain('nobody reads the pipe');
    expect(published()).toBeUndefined();
  });
});

describe('a configuration that cannot be read', () => {
  it.each([
    ['leads to itself', 'ln -s manifest-publish.yaml manifest-publish.yaml', '', 2],
    ['is a pipe', 'mkfifo manifest-publish.yaml', '', 2],
    ['is a bomb of aliases', 'printf "%s" "$BOMB" >manifest-publish.yaml', '', 2],
    ['is named and is a folder', 'mkdir it.yaml', '--config it.yaml', 2],
  ])('since it %s ends with %i, told by its name', async (_, prepare, flags, code) => {
    const bomb = ['a0: &a0 [x,x,x,x,x,x,x,x,x]'];
    for (let at = 1; at < 30; at++)
      bomb.push(
        `a${at}: &a${at} [${Array(9)
          .fill(`*a${at - 1}`)
          .join(',')}]`,
      );
    const line = `BOMB='${bomb.join('\n')}'; ${prepare}; mp inspect ${sources[0]} ${flags}`;
    const { exitCode, stderr } = await shell(line);
    expect(exitCode, stderr).toBe(code);
    expect(stderr).toContain('CONFIG_INVALID');
    expect(stderr).toMatch(/^error: \S*\.yaml:/m);
  });
});

describe('a tree with a hole', () => {
  it('is drawn with what is missing in its place, as verify says', async () => {
    const folder = emptyFolder();
    const finished = await cli(folder, ['publish', target, ...sources, '--json', '-q']);
    expect(finished.exitCode, finished.stderr).toBe(0);
    const { lists } = parsed(finished) as { lists: { images: { digest: string }[] }[] };
    const lost = lists[0]?.images[1]?.digest ?? '';
    registry.deleteManifest('debian/debian', lost);
    const tree = await cli(folder, ['inspect', '--tree', target]);
    expect(tree.exitCode, tree.stderr).toBe(0);
    expect(tree.stdout).toMatch(new RegExp(`^└─ \\S+ +${lost} +missing in the registry$`, 'm'));
    expect(tree.stderr).toContain('1 of 2 manifests are missing');
    expect((await cli(folder, ['verify', target])).stdout).toContain(lost);
  });
});
