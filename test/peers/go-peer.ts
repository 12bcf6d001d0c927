import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { needProgram, run, type Variables } from '../helpers/processes.ts';

const SOURCE = fileURLToPath(new URL('go/', import.meta.url));

/** In ms; the first time modules are fetched and all of them compiled. */
const BUILD_LIMIT = 600_000;

/** Parsers of others, in Go. */
export type GoPeer = {
  /** Sends the texts to one process, and hands each to `compare` with the answer to it, in order. */
  ask<Answer>(
    what: 'references' | 'challenges',
    texts: Iterable<string>,
    compare: (text: string, answer: Answer) => void,
  ): Promise<void>;
};

/** Builds the program, outside of the repository; a text when its modules cannot be fetched. */
export async function buildGoPeer(): Promise<GoPeer | string> {
  const folder = join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'manifest-publish-ci', 'bin');
  await mkdir(folder, { recursive: true });
  const file = join(folder, 'go-parsers');
  const built = await run(needProgram('go'), ['build', '-o', file, '.'], {
    cwd: SOURCE,
    env: goVariables(),
    timeout: BUILD_LIMIT,
  });
  if (built.exitCode === 0) return { ask: (...question) => ask(file, ...question) };
  if (/dial tcp|no such host|proxyconnect|timeout|cannot find module|403 Forbidden/i.test(built.stderr)) {
    return 'the Go modules cannot be fetched';
  }
  throw new Error(`go build failed:\n${built.stderr}`);
}

/** Where Go keeps things, and where it fetches them. */
function goVariables(): Variables {
  const entries = Object.entries(process.env).filter(([name]) =>
    /^(?:HOME|TMPDIR|XDG_CACHE_HOME|GO[A-Z0-9]*|https?_proxy|no_proxy)$/i.test(name),
  );
  return Object.fromEntries(entries.map(([name, value]) => [name, value ?? '']));
}

async function ask<Answer>(
  file: string,
  what: string,
  texts: Iterable<string>,
  compare: (text: string, answer: Answer) => void,
): Promise<void> {
  const child = spawn(file, [what], { stdio: ['pipe', 'pipe', 'inherit'] });
  const closed = once(child, 'close');
  const asked: string[] = [];
  let answered = 0;
  const send = async () => {
    for (const text of texts) {
      asked.push(text);
      if (!child.stdin.write(`${Buffer.from(text).toString('base64')}\n`)) await once(child.stdin, 'drain');
    }
    child.stdin.end();
  };
  const receive = async () => {
    for await (const line of createInterface({ input: child.stdout })) {
      compare(asked[answered] ?? '', JSON.parse(line) as Answer);
      answered += 1;
    }
  };
  try {
    await Promise.all([send(), receive()]);
    await closed;
  } finally {
    child.kill('SIGKILL');
  }
  if (answered !== asked.length) throw new Error(`${answered} answers to ${asked.length} texts`);
}
