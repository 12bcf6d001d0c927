import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parsePlatform } from '../../src/model/platform.ts';
import { makeIndex, type RunningRegistry, seedDebian } from '../../src/registry-server/index.ts';
import { BIN, emptyFolder } from '../cli/program.ts';
import { together } from '../cli/shard-run.ts';
import { makeImage, putBuilt, seedImage } from '../helpers/images.ts';
import { type Finished, needProgram, type Variables } from '../helpers/processes.ts';
import { read } from './pages.ts';

/** What the pages call registries; all of them are the one that runs here. */
const HOSTS =
  /\b(?:public\.ecr\.aws|ghcr\.io|docker\.io|registry\.example\.com|mirror\.example\.com|localhost:5000)(?=\/)/g;

/** An image of one architecture shows it in its name. */
const ARCHITECTURE = /[-/:](amd64|arm64|i386|s390x|ppc64el|mips64el|armel|armhf|armv7|arm)(?=[-:/]|$)/;

const PLATFORMS: Readonly<Record<string, string>> = {
  i386: 'linux/386',
  ppc64el: 'linux/ppc64le',
  mips64el: 'linux/mips64le',
  armel: 'linux/arm/v5',
  armhf: 'linux/arm/v7',
  armv7: 'linux/arm/v7',
  arm: 'linux/arm/v7',
};

/** A home that is the working folder, too, with the programs that pages call. */
export type Stage = {
  readonly folder: string;
  /** The text with the hosts of the pages replaced; images that it names are there afterwards. */
  here(text: string): string;
  write(name: string, text: string): void;
  /** Runs a line as people paste it. */
  shell(line: string): Promise<Finished>;
};

/** Two platforms in one digest, for those who merge digests. */
export function bothPlatforms(registry: RunningRegistry, repository: string): string {
  const entries = ['amd64', 'arm64'].map((architecture) => {
    const platform = { os: 'linux', architecture };
    return { manifest: makeImage(`${repository}-${architecture}`, { platform }), platform };
  });
  const index = makeIndex(entries);
  putBuilt(registry, repository, index);
  return index.descriptor.digest;
}

/** Sets the stage of one page. */
export function setStage(registry: RunningRegistry, variables: Variables): Stage {
  const folder = emptyFolder();
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  const program = (name: string, text: string) => {
    writeFileSync(join(bin, name), `#!/bin/sh\n${text}\n`);
    chmodSync(join(bin, name), 0o755);
  };
  program('manifest-publish', `exec '${process.execPath}' '${BIN}' "$@"`);
  // The package is not on npm: npx has it, but from a file it comes as it does for everybody.
  program(
    'npx',
    `case "$*" in *--package*) exec '${needProgram('npx')}' "$@";; esac
[ "$1" = --yes ] && shift
name="\${1%@*}"; shift; exec "$name" "$@"`,
  );
  // As docker does it with a plugin, see test/peers/docker-plugin.test.ts for the real one.
  program('docker', `exec "$HOME/.docker/cli-plugins/docker-$1" "$@"`);
  seedDebian(registry);

  const stage: Stage = {
    folder,
    here(text) {
      const own = text.replaceAll(HOSTS, registry.host);
      const pattern = new RegExp(`${registry.host}/([a-z0-9/._-]+):([\\w.-]+)`, 'g');
      for (const [reference, repository = '', tag = ''] of own.matchAll(pattern)) {
        const architecture = ARCHITECTURE.exec(reference.slice(registry.host.length))?.[1];
        if (architecture === undefined || registry.tagOf(repository, tag) !== undefined) continue;
        const platform = parsePlatform(PLATFORMS[architecture] ?? `linux/${architecture}`);
        seedImage(registry, repository, tag, { platform });
      }
      return own;
    },
    write(name, text) {
      mkdirSync(dirname(join(folder, name)), { recursive: true });
      writeFileSync(join(folder, name), stage.here(text));
    },
    async shell(line) {
      const path = `${bin}:${process.env['PATH'] ?? ''}`;
      const words = ['-e', '-o', 'pipefail', '-c', stage.here(line)];
      const env = { PATH: path, npm_config_offline: 'true', npm_config_prefix: join(folder, 'prefix'), ...variables };
      const [finished] = await together(folder, [{ program: needProgram('bash'), words, env }]);
      if (finished === undefined) throw new Error('nothing was run');
      return finished;
    },
  };
  stage.write('lists.yaml', read('examples/lists.yaml'));
  return stage;
}
