import { join } from 'node:path';
import { expect } from 'vitest';
import { type Finished, needProgram, run } from '../helpers/processes.ts';
import type { Command } from './manifest-inputs.ts';
import { lastWords, makeHome, PROGRAM } from './publish-command.ts';

/** One of the two programs that understand these commands, in a home of its own. */
export type Client = {
  readonly name: 'ours' | 'docker';
  readonly home: string;
  /** Runs one command as it was typed after `docker manifest`. */
  manifest(...words: Command): Promise<Finished>;
};

/** What can be seen of one command. */
export type Shown = { readonly command: string; readonly succeeded: boolean; readonly stdout: string };

/** What `manifest` of docker 28 writes and prints is compared with; older ones differ in OCI images and in bytes. */
export const DOCKER = 'docker 28';

/** A client with an empty home below `folder`, and its docker configuration there too. */
export async function makeClient(name: Client['name'], folder: string): Promise<Client> {
  const home = await makeHome(folder);
  return clientAt(name, home);
}

/** The other client in the home of this one. */
export function clientAt(name: Client['name'], home: string): Client {
  const [program, ...first] = name === 'ours' ? [process.execPath, PROGRAM] : [needProgram('docker'), 'manifest'];
  const env = { HOME: home, DOCKER_CONFIG: join(home, '.docker') };
  return { name, home, manifest: (...words) => run(program, [...first, ...words], { env, cwd: home }) };
}

/**
 * Runs the commands one after another and writes down what they show, with the names of the list and of the registry
 * made the same for both clients.
 */
export async function play(
  client: Client,
  commands: readonly Command[],
  names: { readonly host: string; readonly list: string },
): Promise<{ readonly shown: readonly Shown[]; readonly words: string }> {
  const shown: Shown[] = [];
  const words: string[] = [];
  const list = `${names.host}/${names.list}`;
  for (const command of commands) {
    const typed = command.map((word) => word.replaceAll('{host}', names.host).replaceAll('{list}', list));
    const finished = await client.manifest(...typed);
    const stdout = alike(finished.stdout, names);
    shown.push({ command: command.join(' '), succeeded: finished.exitCode === 0, stdout });
    words.push(`${client.name} ${command.join(' ')}: ${lastWords(finished)}`);
  }
  return { shown, words: words.join('\n') };
}

/** The same text whichever client's list it speaks of, and wherever the registry listens. */
export function alike(text: string, { host, list }: { readonly host: string; readonly list: string }): string {
  const [repository = '', tag] = list.split(':');
  const exact = tag === undefined ? `${host}/${repository}` : `${host}/${repository}:${tag}`;
  return text.replaceAll(exact, '{list}').replaceAll(host, '{host}');
}

/** Waits for a command that must succeed. */
export async function good(command: Promise<Finished>): Promise<Finished> {
  const finished = await command;
  expect(finished, lastWords(finished)).toMatchObject({ exitCode: 0 });
  return finished;
}
