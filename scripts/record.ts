import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process, { stderr } from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { seedDebian, startRegistry } from '../src/registry-server/index.ts';
import { openTerminal } from '../test/helpers/terminal.ts';
import { animate, type Frame } from './recording.ts';
import { ROOT } from './root.ts';

// Makes docs/recordings/: what somebody sees who types these commands, taken from a real terminal (tmux) in front of
// the embedded registry, which refuses mounts. Digests are the same each time; times and rates are those of the run.

const FOLDER = join(ROOT, 'docs', 'recordings');
const COLUMNS = 120;
const FRAME_MS = 250;
/** Bytes of each layer, and bytes a second of the line: enough to see them move. */
const LAYER = 12_000_000;
const LINE = 40_000_000;

const SCENES = [
  { name: 'demo', title: 'manifest-publish demo', command: 'manifest-publish demo' },
  {
    name: 'publish',
    title: 'manifest-publish publish, where the registry refuses mounts',
    command:
      'manifest-publish publish localhost:5000/debian/debian:bullseye localhost:5000/debian/{amd64,arm64,s390x}:bullseye',
  },
  {
    name: 'error',
    title: 'a source that is not there',
    command: 'manifest-publish publish localhost:5000/debian/debian:11 localhost:5000/debian/{amd64,arm46}:bullseye',
  },
] as const;

const home = await mkdtemp(join(tmpdir(), 'recording-'));
const registry = await startRegistry({ changes: { mount: { mode: 'ignore' }, answer: { latencyMs: 40 } } });
const line = await slowLine(Number(registry.host.split(':')[1]), 5000);
try {
  seedDebian(registry, { layerBytes: LAYER });
  await mkdir(FOLDER, { recursive: true });
  await symlink(join(ROOT, 'bin', 'run.js'), join(home, 'manifest-publish'));
  for (const { name, title, command } of SCENES) {
    const frames = await record(command);
    const picture = animate(frames, COLUMNS, title);
    if (picture.includes(home) || picture.includes(ROOT)) throw new Error(`${name} shows a path of this machine`);
    await writeFile(join(FOLDER, `${name}.svg`), picture);
    stderr.write(`docs/recordings/${name}.svg written, ${frames.length} frames\n`);
  }
} finally {
  line.close();
  await registry.close();
  await rm(home, { recursive: true });
}

/** Types the command and takes what the terminal shows, as often as it changes. */
async function record(command: string): Promise<readonly Frame[]> {
  const env = { HOME: home, PATH: `${home}:${process.env['PATH'] ?? ''}`, PS1: '$ ', LANG: 'C.UTF-8' };
  const shell = 'bash --noprofile --norc -i';
  const terminal = openTerminal(shell, { columns: COLUMNS, rows: 30, cwd: home, env });
  try {
    const frames: Frame[] = [];
    const began = performance.now();
    const take = () => {
      const lines = terminal.everything({ colors: true }).split('\n');
      const at = Number(((performance.now() - began) / 1000).toFixed(2));
      if (lines.join('\n') !== frames.at(-1)?.lines.join('\n')) frames.push({ at, lines });
      return lines;
    };
    await terminal.until((text) => text.endsWith('$'));
    take();
    terminal.type(command);
    await terminal.until((text) => text.replaceAll('\n', '').endsWith(command.slice(-20)));
    take();
    await sleep(1000);
    terminal.key('Enter');
    for (;;) {
      await sleep(FRAME_MS);
      if (take().at(-1) === '$') return frames;
    }
  } finally {
    terminal.stop();
  }
}

/** A line to the port that lets through so many bytes a second, on a port that looks well. */
async function slowLine(to: number, port: number): Promise<Server> {
  let budget = 0;
  const waiting = new Set<Socket>();
  setInterval(() => {
    budget = Math.min(LINE / 10, budget + LINE / 50);
    if (budget > 0) for (const socket of waiting) socket.resume();
    if (budget > 0) waiting.clear();
  }, 20).unref();
  const server = createServer((client) => {
    const upstream = connect(to, '127.0.0.1');
    upstream.pipe(client);
    client.on('error', () => upstream.destroy());
    upstream.on('error', () => client.destroy());
    client.on('end', () => upstream.end());
    client.on('data', (piece) => {
      budget -= piece.length;
      upstream.write(piece);
      if (budget < 0) waiting.add(client.pause());
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  return server;
}
