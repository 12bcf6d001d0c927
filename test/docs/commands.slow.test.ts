import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { RunningRegistry } from '../../src/registry-server/index.ts';
import { needProgram, run, type Variables } from '../helpers/processes.ts';
import { withRegistry } from '../helpers/registry.ts';
import { shownBy } from './commands.ts';
import { blocksOf, inlineCodes, ROOT, read } from './pages.ts';
import { bothPlatforms, type Stage, setStage } from './stage.ts';

/** What a page takes for given. */
type Page = {
  /** Commands between backticks are run, too. */
  readonly inline?: true;
  readonly variables?: (registry: RunningRegistry) => Variables;
  readonly prepare?: (stage: Stage) => Promise<void> | void;
  /** Blocks that show something else, by their first line. */
  readonly outputs?: readonly string[];
};

async function succeeds(stage: Stage, command: string): Promise<void> {
  const { exitCode, stderr } = await stage.shell(command);
  expect(exitCode, `${command}\n${stderr}`).toBe(0);
}

const folders = (...names: readonly string[]) => ({
  prepare: ({ folder }: Stage) => {
    for (const name of names) mkdirSync(join(folder, name), { recursive: true });
  },
});

const HUGE = `target: registry.example.com/acme/huge:1
sources: [registry.example.com/acme/huge-amd64:1, registry.example.com/acme/huge-arm64:1]
`;

const PAGES: Readonly<Record<string, Page>> = {
  'README.md': {
    prepare: async ({ folder }) => {
      const env = { HOME: folder };
      const packed = await run(needProgram('npm'), ['pack', '--silent', '--pack-destination', folder], {
        cwd: ROOT,
        env,
      });
      expect(packed.exitCode, packed.stderr).toBe(0);
    },
    outputs: ['error mounting debian/amd64@sha256:… to debian/debian'],
  },
  'examples/README.md': {},
  'docs/ci.md': {
    variables: (registry) => {
      const digest = bothPlatforms(registry, 'acme/app');
      const image = `${registry.host}/acme/app`;
      return {
        DIGEST: digest,
        REF: `${image}@${digest}`,
        DOCKER_METADATA_OUTPUT_JSON: JSON.stringify({ tags: [`${image}:1.2.3`, `${image}:1.2`], labels: {} }),
        CI_REGISTRY_IMAGE: image,
        CI_COMMIT_TAG: '1.4',
        TARGET: `${image}:azure`,
        SOURCES: `${image}@${digest}`,
      };
    },
    prepare: (stage) => {
      for (const name of ['amd64', 'arm64']) stage.here(`ghcr.io/acme/app/${name}:1.4`);
    },
  },
  'docs/config.md': {},
  'docs/library.md': {},
  'docs/docker-plugin.md': {},
  'docs/completion.md': {
    inline: true,
    ...folders('.config/fish/completions'),
  },
  'docs/scale-out.md': {
    prepare: async (stage) => {
      mkdirSync(join(stage.folder, 'reports'));
      stage.write('huge.yaml', HUGE);
      // What the other workers do.
      await succeeds(stage, 'manifest-publish publish -f huge.yaml --stage content');
      for (const shard of [1, 2, 4, 5, 6, 7, 8]) {
        await succeeds(
          stage,
          `manifest-publish publish -f lists.yaml --shard ${shard}/8 --report reports/${shard}.json`,
        );
      }
    },
  },
  'docs/troubleshooting.md': {},
  'docs/spec.md': {
    prepare: (stage) => stage.write('FILE', HUGE),
    outputs: ['app.yaml:3:1: unknown key "expectPlatfroms"'],
  },
  'docs/mount-check.md': {},
  'docs/oci-layout.md': {
    prepare: async (stage) => {
      mkdirSync(join(stage.folder, 'build'));
      for (const name of ['amd64', 'arm64']) {
        await succeeds(stage, `manifest-publish publish oci:build/${name} ghcr.io/acme/app:1.4-${name}`);
      }
    },
  },
  'docs/registries.md': {},
  'docs/coming-from-docker-manifest.md': {},
  'docs/coming-from-buildx-imagetools.md': {},
  'docs/coming-from-crane.md': {},
  'docs/coming-from-manifest-tool.md': {
    prepare: (stage) => {
      for (const name of ['amd64', 'armv7']) stage.here(`registry.example.com/app-${name}:v1`);
      stage.write('app.yaml', blocksOf(read('docs/coming-from-manifest-tool.md')).find(isYaml)?.text ?? '');
    },
  },
};

const isYaml = ({ language }: { readonly language: string }) => language === 'yaml';

/** What is not run here, and why. A command that is neither run nor in this list fails the test. */
const NOT_RUN: Readonly<Record<string, string>> = {
  'npm ci && npm run demo': 'installs from npm; the demo is run by test/cli/examples.slow.test.ts',
  'npm test': 'this is it',
  'manifest-publish registry serve --seed debian   # eight images to try with; stop it with Ctrl-C':
    'does not end; test/cli/signals.slow.test.ts runs it',
  'source <(manifest-publish completion zsh)': 'needs zsh; test/cli/completion.slow.test.ts',
  'manifest-publish completion fish | source': 'needs fish; test/cli/completion.slow.test.ts',
  'aws ecr put-account-setting --name BLOB_MOUNTING --value ENABLED': 'asks AWS',
  'manifest-publish mount-check TARGET-REPO SOURCE-REPO[:TAG]': 'a form, with an example below',
  'manifest-publish mount-check TARGET-REPO SOURCE-REPO[:TAG] [--write]': 'a form, with an example in mount-check.md',
};

describe('commands of the pages', () => {
  const met = new Set<string>();

  it.each(Object.entries(PAGES))('%s', async (page, { inline, variables, prepare, outputs = [] }) => {
    const shown = shownBy(page, inline === true);
    expect(shown.outputs).toEqual(outputs);
    await withRegistry({}, async (registry) => {
      const stage = setStage(registry, variables?.(registry) ?? {});
      await prepare?.(stage);
      for (const command of shown.commands) {
        met.add(command);
        if (command in NOT_RUN) continue;
        await succeeds(stage, command);
      }
    });
  });

  it('that the README tells to write instead of those of other tools', () =>
    withRegistry({}, async (registry) => {
      const section = /^## Coming from\n([\s\S]*?)^## /m.exec(read('README.md'))?.[1] ?? '';
      const rows = section.split('\n').map((row) => row.split('|')[2] ?? '');
      const forms = rows.flatMap(inlineCodes).filter((code) => code.startsWith('manifest-publish '));
      expect(forms).toHaveLength(7);
      const stage = setStage(registry, {});
      stage.write('huge.yaml', HUGE);
      for (const name of ['amd64', 'arm64']) stage.here(`ghcr.io/acme/app-${name}:1`);
      const words: Readonly<Record<string, string>> = {
        A: 'localhost:5000/debian/armhf:bullseye',
        B: 'localhost:5000/debian/amd64:bullseye',
        P: 'linux/amd64,linux/arm64',
        'R-ARCH:1': 'ghcr.io/acme/app-ARCH:1',
        SPEC: 'huge.yaml',
        'linux/arm/v7=A': 'linux/arm/v7=localhost:5000/debian/armhf:bullseye',
      };
      for (const [at, form] of forms.entries()) {
        const target = `ghcr.io/acme/list:${at}`;
        const line = (text: string) => text.split(' ').map((word) => (word === 'T' ? target : (words[word] ?? word)));
        if (form.startsWith('manifest-publish push ')) {
          await succeeds(stage, line('manifest-publish create T A B').join(' '));
        }
        await succeeds(stage, line(form).join(' '));
        expect(registry.tagOf('acme/list', String(at)) ?? registry.tagOf('acme/huge', '1')).toBeDefined();
      }
    }));

  it('are not left out for nothing', () => {
    expect(Object.keys(NOT_RUN).filter((command) => !met.has(command))).toEqual([]);
    for (const page of Object.keys(PAGES)) expect(existsSync(join(ROOT, page))).toBe(true);
  });
});
