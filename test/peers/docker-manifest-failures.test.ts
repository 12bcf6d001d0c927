import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { withPeers } from './lane.ts';
import { DOCKER, play } from './manifest-clients.ts';
import type { Command } from './manifest-inputs.ts';
import { type Stage, startStage } from './manifest-stage.ts';
import { ask } from './registry-access.ts';

/** Something that neither client can do. */
type Failure = {
  readonly name: string;
  /** What is done before; all of it succeeds. */
  readonly before?: readonly Command[];
  readonly command: Command;
  /** Words that a script may look for in stderr; both print them. */
  readonly phrase: string;
  /** Of ours. docker's is 1, for unknown flags 125. */
  readonly exitCode: number;
};

const AMD64 = '{host}/failures/amd64:1';
const NAMELESS = '{host}/failures/nameless:1';
const CREATED: Command = ['create', '--insecure', '{list}', AMD64];

const FAILURES: readonly Failure[] = [
  {
    name: 'create: an image that is not there',
    command: ['create', '--insecure', '{list}', '{host}/failures/absent:1'],
    phrase: 'no such manifest: {host}/failures/absent:1',
    exitCode: 4,
  },
  {
    name: 'create: an image that is not there, after one that is',
    command: ['create', '--insecure', '{list}', AMD64, '{host}/failures/amd64:absent'],
    phrase: 'no such manifest: {host}/failures/amd64:absent',
    exitCode: 4,
  },
  {
    name: 'create: a list that was created before, without --amend',
    before: [CREATED],
    command: CREATED,
    phrase: 'refusing to amend an existing manifest list with no --amend flag',
    exitCode: 7,
  },
  {
    name: 'create: a list whose name is none',
    command: ['create', '--insecure', '{host}/Failures/List:1', AMD64],
    phrase: 'invalid reference format',
    exitCode: 2,
  },
  {
    name: 'create: an image whose name is none',
    command: ['create', '--insecure', '{list}', '{host}/failures//amd64'],
    phrase: 'invalid reference format',
    exitCode: 2,
  },
  {
    name: 'annotate: an image that is not in the list',
    before: [CREATED],
    command: ['annotate', '{list}', NAMELESS, '--arch', 'arm'],
    phrase: `manifest for image ${NAMELESS} does not exist in {list}`,
    exitCode: 4,
  },
  {
    name: 'annotate: a list that nobody created',
    command: ['annotate', '{list}', AMD64, '--arch', 'arm'],
    phrase: `manifest for image ${AMD64} does not exist in {list}`,
    exitCode: 4,
  },
  {
    name: 'inspect: a reference that is neither here nor there',
    command: ['inspect', '--insecure', '{host}/failures/absent:1'],
    phrase: 'no such manifest: {host}/failures/absent:1',
    exitCode: 4,
  },
  {
    name: 'inspect: an image of a list that nobody created',
    command: ['inspect', '--insecure', '{list}', AMD64],
    phrase: `No such manifest: ${AMD64}`,
    exitCode: 4,
  },
  {
    name: 'inspect: an image that is not in the list',
    before: [CREATED],
    command: ['inspect', '--insecure', '{list}', NAMELESS],
    phrase: `No such manifest: ${NAMELESS}`,
    exitCode: 4,
  },
  {
    name: 'push: a list that nobody created',
    command: ['push', '--insecure', '{list}'],
    phrase: 'No such manifest: {list}',
    exitCode: 4,
  },
  {
    name: 'push: a list that was pushed and purged',
    before: [CREATED, ['push', '--insecure', '-p', '{list}']],
    command: ['push', '--insecure', '{list}'],
    phrase: 'No such manifest: {list}',
    exitCode: 4,
  },
  {
    name: 'push: an image of which nobody said for what it is',
    before: [['create', '--insecure', '{list}', AMD64, NAMELESS]],
    command: ['push', '--insecure', '{list}'],
    phrase: `manifest ${NAMELESS} must have an OS and Architecture to be pushed to a registry`,
    exitCode: 2,
  },
  {
    name: 'rm: a list that nobody created',
    command: ['rm', '{list}'],
    phrase: 'No such manifest: {list}',
    exitCode: 4,
  },
  {
    name: 'rm: the second time',
    before: [CREATED, ['rm', '{list}']],
    command: ['rm', '{list}'],
    phrase: 'No such manifest: {list}',
    exitCode: 4,
  },
  ...[
    ['create'],
    ['create', '{list}'],
    ['annotate', '{list}'],
    ['annotate', '{list}', AMD64, AMD64],
    ['inspect'],
    ['inspect', '{list}', AMD64, AMD64],
    ['push'],
    ['push', '{list}', AMD64],
    ['rm'],
  ].map((command): Failure => {
    const name = `${command[0]}: ${command.length - 1} arguments`;
    return { name, before: command.length > 1 ? [CREATED] : [], command, phrase: '', exitCode: 2 };
  }),
  ...['create', 'annotate', 'inspect', 'push', 'rm'].map(
    (verb): Failure => ({
      name: `${verb}: a flag that there is not`,
      command: [verb, '--nonsense', '{list}', AMD64],
      phrase: '--nonsense',
      exitCode: 2,
    }),
  ),
];

withPeers([DOCKER, 'docker-registry'], 'docker manifest and ours both fail', () => {
  let stage: Stage;
  beforeAll(async () => {
    stage = await startStage();
    await stage.seed('failures/amd64');
    await stage.seed('failures/nameless', { platform: {} });
  });
  afterAll(() => stage?.stop());

  it.concurrent.each(FAILURES)('$name', async ({ name, before = [], command, phrase, exitCode }: Failure) => {
    const repository = `failures/${name.replaceAll(/[^a-z0-9]+/g, '-')}`;
    const clients = await stage.clients();
    for (const client of [clients.docker, clients.ours]) {
      const names = { host: stage.host, list: `${repository}:${client.name}` };
      const { shown, words } = await play(client, before, names);
      expect(
        shown.map(({ succeeded }) => succeeded),
        words,
      ).toEqual(before.map(() => true));

      const finished = await client.manifest(...command.map((word) => filled(word, names)));
      const what = `${client.name}: ${finished.stderr}`;
      expect(client.name === 'ours' ? [exitCode] : [1, 125], what).toContain(finished.exitCode);
      expect(finished.stdout, what).toBe('');
      expect(finished.stderr, what).toContain(filled(phrase, names));
    }
  });

  describe('and write nothing', () => {
    it('to the registry where the list was never whole', async () => {
      const { body } = await ask(stage.host, 'GET', '/v2/_catalog?n=1000');
      const { repositories } = JSON.parse(body.toString('utf8')) as { readonly repositories: readonly string[] };
      // Both lists that a test pushed before it failed are from the row about purging.
      expect(repositories.filter((name) => !/amd64|nameless|purged/.test(name))).toEqual([]);
    });
  });
});

function filled(word: string, { host, list }: { readonly host: string; readonly list: string }): string {
  return word.replaceAll('{host}', host).replaceAll('{list}', `${host}/${list}`);
}
