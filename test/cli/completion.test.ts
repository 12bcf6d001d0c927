import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import manifest from '../../oclif.manifest.json' with { type: 'json' };
import { type CommandManifest, completionScripts } from '../../scripts/completion.ts';
import { encodeDraft } from '../../src/store/codec.ts';
import { DRAFT_END, draftFileName } from '../../src/store/file-name.ts';
import { draftFolder } from '../../src/store/folder.ts';
import { findProgram } from '../helpers/processes.ts';

const SCRIPTS = completionScripts(manifest as CommandManifest);
const DRAFTS = ['localhost:5000/debian/debian:draft', 'localhost:5000/other:1', 'docker.io/library/alpine:3'];

const folder = mkdtempSync(join(tmpdir(), 'completion-'));
const env = { PATH: process.env['PATH'] ?? '', HOME: folder, LANG: 'C.UTF-8' };
const shells = { bash: findProgram('bash'), zsh: findProgram('zsh'), fish: findProgram('fish') };

beforeAll(() => {
  const drafts = draftFolder({}, folder);
  mkdirSync(drafts, { recursive: true });
  for (const reference of DRAFTS) {
    const bytes = encodeDraft({ draft: { reference, entries: [] }, manifests: new Map() });
    writeFileSync(join(drafts, draftFileName(reference) + DRAFT_END), bytes);
  }
  writeFileSync(join(drafts, 'no-draft.json'), 'something else\n');
  for (const [shell, text] of Object.entries(SCRIPTS)) writeFileSync(join(folder, `script.${shell}`), text);
  writeFileSync(join(folder, 'a list.yaml'), '');
  mkdirSync(join(folder, 'digests'));
});

afterAll(() => rmSync(folder, { recursive: true }));

/** The words of a line as bash hands them to a completion: parted at blanks, and outside of quotes at `:` and `=`. */
function bashWords(line: string): readonly string[] {
  const words = line.match(/"[^"]*"?|'[^']*'?|[:=]+|[^\s:="']+/g) ?? [];
  return /\s$/.test(line) ? [...words, ''] : words;
}

/** What bash would put in the place of the word at the end of the line, up to the last `:` or `=` in it. */
function bash(line: string, variables: Readonly<Record<string, string>> = {}): readonly string[] {
  const words = bashWords(line);
  const script = `
    source "$HOME/script.bash"
    COMP_WORDBREAKS=\${BREAKS-$COMP_WORDBREAKS}
    COMP_LINE=$1 COMP_POINT=\${#1}; shift
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    _manifest_publish
    printf '%s\\n' "\${COMPREPLY[@]}"`;
  const args = ['--norc', '--noprofile', '-c', script, 'bash', line, ...words];
  const text = execFileSync(shells.bash ?? 'bash', args, {
    env: { ...env, ...variables },
    cwd: folder,
    encoding: 'utf8',
  });
  return text.split('\n').filter((each) => each !== '');
}

describe.skipIf(shells.bash === undefined)('in bash', () => {
  it('completes commands, also those of two words', () => {
    expect(bash('manifest-publish ')).toEqual(
      expect.arrayContaining(['publish', 'create', 'annotate', 'push', 'inspect', 'rm', 'ls', 'verify', 'registry']),
    );
    expect(bash('manifest-publish pu')).toEqual(['publish', 'push']);
    expect(bash('manifest-publish registry ')).toEqual(['serve']);
    expect(bash('manifest-publish --progress plain --debug ins')).toEqual(['inspect']);
  });

  it('completes flags of the command', () => {
    expect(bash('manifest-publish inspect --d')).toEqual(['--debug', '--digest']);
    expect(bash('manifest-publish publish --exp')).toEqual(['--expect-digest', '--expect-platforms']);
    expect(bash('manifest-publish rm --exp')).toEqual([]);
  });

  it('completes the values of flags, after a blank and after =', () => {
    expect(bash('manifest-publish publish --type ')).toEqual(['auto', 'oci', 'docker']);
    expect(bash('manifest-publish publish --type=o')).toEqual(['oci']);
    expect(bash('manifest-publish publish --type=')).toEqual(['auto', 'oci', 'docker']);
    expect(bash('manifest-publish publish --type=o', { BREAKS: ' ' })).toEqual(['--type=oci']);
    expect(bash('manifest-publish publish -t ')).toEqual([]);
    expect(bash('manifest-publish registry serve --profile zot')).toEqual(expect.arrayContaining(['zot']));
  });

  it('completes platforms, and lists of them', () => {
    expect(bash('manifest-publish publish --platform linux/arm/')).toEqual(
      ['v5', 'v6', 'v7'].map((variant) => `linux/arm/${variant}`),
    );
    expect(bash('manifest-publish publish --expect-platforms linux/amd64,linux/arm6')).toEqual([
      'linux/amd64,linux/arm64',
    ]);
    expect(bash('manifest-publish annotate a b --os ')).toEqual(['linux', 'windows']);
    expect(bash('manifest-publish annotate a b --arch s')).toEqual(['s390x']);
  });

  it('completes names of drafts where a draft is meant, also beyond their colons', () => {
    for (const command of ['annotate', 'push', 'inspect', 'rm']) {
      expect(bash(`manifest-publish ${command} loc`)).toEqual(DRAFTS.filter((name) => name.startsWith('loc')));
    }
    expect(bash('manifest-publish rm localhost:5000/debian/debian:dr')).toEqual(['draft']);
    expect(bash('manifest-publish rm localhost:')).toEqual(['5000/debian/debian:draft', '5000/other:1']);
    expect(bash('manifest-publish rm localhost:5000/d', { BREAKS: ' ' })).toEqual([DRAFTS[0]]);
    expect(bash('manifest-publish rm one two alp')).toEqual(['alpine:3']);
    expect(bash('manifest-publish annotate one loc')).toEqual([]);
    expect(bash('manifest-publish verify loc')).toEqual([]);
  });

  it('keeps to a word in quotes as a whole', () => {
    expect(bash('manifest-publish rm "localhost:5000/d')).toEqual([DRAFTS[0]]);
    expect(bash("manifest-publish push --type oci 'localhost:5000/o")).toEqual([DRAFTS[1]]);
  });

  it('takes nothing for a flag after --', () => {
    expect(bash('manifest-publish rm -- loc')).toHaveLength(2);
    expect(bash('manifest-publish rm -- --a')).toEqual([]);
    expect(bash('manifest-publish rm --a')).toEqual(['--all']);
  });

  it('completes files and folders where one is meant', () => {
    expect(bash('manifest-publish publish -f a')).toEqual(['a list.yaml']);
    expect(bash('manifest-publish publish --digests-dir d')).toEqual(['digests']);
    expect(bash('manifest-publish publish --digests-dir a')).toEqual([]);
  });

  it('looks for drafts where the program keeps them', () => {
    expect(bash('manifest-publish rm loc', { XDG_DATA_HOME: '/nowhere' })).toEqual([]);
    expect(bash('manifest-publish rm loc', { XDG_DATA_HOME: 'relative' })).toHaveLength(2);
    expect(bash('manifest-publish rm loc', { DOCKER_CONFIG: '/nowhere' })).toEqual([]);
    const { DOCKER_CONFIG, MANIFEST_PUBLISH_DATA_DIR } = {
      DOCKER_CONFIG: `${folder}/docker`,
      MANIFEST_PUBLISH_DATA_DIR: `${folder}/own`,
    };
    for (const variables of [{ DOCKER_CONFIG }, { DOCKER_CONFIG: '/nowhere', MANIFEST_PUBLISH_DATA_DIR }]) {
      const drafts = draftFolder(variables, folder);
      mkdirSync(drafts, { recursive: true });
      const draft = { reference: 'r.example/moved:1', entries: [] };
      writeFileSync(join(drafts, 'x.json'), encodeDraft({ draft, manifests: new Map() }));
      expect(bash('manifest-publish rm ', variables)).toEqual(['r.example/moved:1']);
    }
  });
});

describe.skipIf(shells.fish === undefined)('in fish', () => {
  const fish = (line: string): readonly string[] => {
    const args = ['--no-config', '-c', 'source $HOME/script.fish; complete -C $argv[1]', line];
    const text = execFileSync(shells.fish ?? 'fish', args, { env, cwd: folder, encoding: 'utf8' });
    return text.split('\n').flatMap((each) => (each === '' ? [] : [each.replace(/\t.*/, '')]));
  };

  it('completes commands, flags, values, drafts and files', () => {
    expect(fish('manifest-publish pu')).toEqual(['publish', 'push']);
    expect(fish('manifest-publish registry ')).toEqual(['serve']);
    expect(fish('manifest-publish inspect --d')).toEqual(['--debug', '--digest']);
    expect(fish('manifest-publish publish --type=o')).toEqual(['--type=oci']);
    expect(fish('manifest-publish publish --expect-platforms linux/amd64,linux/arm6')).toEqual([
      'linux/amd64,linux/arm64',
    ]);
    expect(fish('manifest-publish rm localhost:5000/d')).toEqual([DRAFTS[0]]);
    expect(fish('manifest-publish rm -- one localhost:5000/d')).toEqual([DRAFTS[0]]);
    expect(fish('manifest-publish annotate one loc')).toEqual([]);
    expect(fish('manifest-publish publish -f a')).toEqual(['a list.yaml']);
    expect(fish('manifest-publish verify a')).toEqual([]);
  });
});

describe('the scripts', () => {
  it.each(['bash', 'zsh', 'fish'] as const)('are read by %s without complaint', (shell) => {
    // sh stands in for a shell that is not here: the others part from its language, but for fish.
    const program = shells[shell];
    if (program === undefined) return;
    execFileSync(program, ['-n', join(folder, `script.${shell}`)], { env });
  });

  it('name every command and every flag that help shows', () => {
    for (const [id, { flags }] of Object.entries((manifest as CommandManifest).commands)) {
      for (const text of Object.values(SCRIPTS)) {
        for (const word of id.split(':')) expect(text).toContain(word);
        for (const flag of Object.values(flags)) {
          if (flag.hidden !== true) expect(text, flag.name).toMatch(new RegExp(`(?:--|-l )${flag.name}\\b`));
        }
      }
    }
  });

  it('refuse a flag that takes a value in some commands only', () => {
    const flag = (type: 'boolean' | 'option') => ({ args: {}, flags: { x: { name: 'x', type } } });
    expect(() => completionScripts({ commands: { a: flag('boolean'), b: flag('option') } })).toThrow('--x takes');
  });
});
