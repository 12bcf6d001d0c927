import { afterAll, beforeAll, expect, it } from 'vitest';
import { type ExternalRegistry, makeFolder, startDebianRegistry } from '../helpers/external-registry.ts';
import { startProgram } from '../reliability/child.ts';
import { debianSources, type Image, makeIndex, type Source } from './images.ts';
import { withPeers } from './lane.ts';
import { makeRandom } from './random.ts';
import { digestOfTag, missingIn, pushSource } from './registry-access.ts';

const ROUNDS = Math.max(1, Math.floor(Number(process.env['MP_RACES'] ?? 2) / 4));
const PUBLISHERS = 8;
const TAG = 'bullseye';
const SOURCES = debianSources();

withPeers(['docker-registry'], `${PUBLISHERS} publishers of one tag at Debian's docker-registry`, () => {
  let folder: Awaited<ReturnType<typeof makeFolder>>;
  let registry: ExternalRegistry;
  beforeAll(async () => {
    folder = await makeFolder();
    registry = await startDebianRegistry(folder.path);
    for (const source of SOURCES) await pushSource(registry.host, source);
  });
  afterAll(async () => {
    await registry?.stop();
    await folder.remove();
  });

  const timeout = 60_000 + ROUNDS * 30_000;
  it(`show one complete list at every look, whoever is killed (${ROUNDS} rounds)`, { timeout }, async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const random = makeRandom(round);
      const repository = `debian/raced-${round}`;
      const choices = new Map<string, readonly Source[]>();
      while (choices.size < PUBLISHERS) {
        const some = random.shuffled(SOURCES).slice(0, 2 + random.below(SOURCES.length - 1));
        choices.set(listOf(some), some);
      }
      let over = false;
      const again: string[][] = [];
      const watching = watch(repository, choices, () => over);
      const ended = [...choices].map(async ([list, sources]) => {
        const names = [repository, ...sources.map((source) => source.repository)];
        const args = ['publish', ...names.map((name) => `${registry.host}/${name}:${TAG}`)];
        const { child, ended: end } = startProgram(folder.path, args);
        const timer =
          random.below(4) === 0 ? setTimeout(() => child.kill('SIGKILL'), 200 + random.below(3000)) : undefined;
        const { exitCode, stdout, stderr } = await end;
        clearTimeout(timer);
        if (child.signalCode === 'SIGKILL') return '';
        if (exitCode === 0 && stdout === `${list}\n`) return '';
        if (isTornLink(exitCode, stderr)) again.push(args);
        else return `${list}: exit ${exitCode}, ${stdout}${stderr}`;
        return '';
      });
      const problems = await Promise.all(ended);
      for (const args of again) {
        const { exitCode, stderr } = await startProgram(folder.path, args).ended;
        if (exitCode !== 0) problems.push(`again: exit ${exitCode}, ${stderr}`);
      }
      over = true;
      expect([...problems.filter((problem) => problem !== ''), ...(await watching)]).toEqual([]);
    }
  });

  /** What is lacking at every one of a few looks: links of blobs are written in place too, by whoever mounts them anew. */
  async function lackingIn(repository: string, images: readonly Image[]): Promise<readonly string[]> {
    let lacking = await missingIn(registry.host, repository, images);
    for (let looks = 1; looks < 5 && lacking.length > 0; looks += 1) {
      await new Promise((done) => setTimeout(done, 200));
      const now = await missingIn(registry.host, repository, images);
      lacking = lacking.filter((one) => now.includes(one));
    }
    return lacking;
  }

  /**
   * A manifest that was refused twice, a second apart, for blobs that are there: the registry read links that another
   * publisher's mount was just writing. It is told, no tag has moved, and the same command does it later.
   */
  function isTornLink(exitCode: number | null, stderr: string): boolean {
    return exitCode === 5 && /answered 400 .*MANIFEST_BLOB_UNKNOWN/.test(stderr) && stderr.includes('no tag was moved');
  }

  /**
   * What was not as promised, at any look. Looks that find nothing do not count: distribution 2.8 writes the link of a
   * tag in place, and who reads in that moment is told that there is none.
   */
  async function watch(
    repository: string,
    choices: ReadonlyMap<string, readonly Source[]>,
    isOver: () => boolean,
  ): Promise<readonly string[]> {
    const problems: string[] = [];
    const seen = new Set<string>();
    for (let last = false; ; last = isOver()) {
      const held = await digestOfTag(registry.host, repository, TAG);
      if (held !== undefined && !seen.has(held)) {
        seen.add(held);
        const images = choices.get(held)?.flatMap((source) => source.images);
        if (images === undefined) problems.push(`the tag holds ${held}, which is nobody's list`);
        else problems.push(...(await lackingIn(repository, images)).map((one) => `${held}: no ${one}`));
      }
      if (last) return seen.size === 0 ? ['the tag was never seen'] : problems;
    }
  }
});

function listOf(sources: readonly Source[]): string {
  return makeIndex(sources.flatMap(({ images }) => images.map(({ entry }) => entry))).digest;
}
