import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { encodeDraft } from '../../src/store/codec.ts';
import { DRAFT_END, draftFileName } from '../../src/store/file-name.ts';
import { draftFolder } from '../../src/store/folder.ts';
import { findProgram, run } from '../helpers/processes.ts';
import { HAS_TERMINAL, openTerminal, type Terminal } from '../helpers/terminal.ts';
import { BIN, cli, emptyFolder } from './program.ts';

const folder = emptyFolder();
const DRAFT = 'localhost:5000/debian/debian:draft';

/** How each shell is started without anybody's settings, and what loads the script in it. */
const SHELLS = {
  bash: { start: 'bash --noprofile --norc -i', load: 'source script.bash' },
  zsh: { start: 'zsh -f -i', load: 'autoload -U compinit; compinit -u -D; source script.zsh' },
  fish: { start: 'fish --no-config', load: 'source script.fish' },
} as const;

beforeAll(async () => {
  const drafts = draftFolder({}, folder);
  mkdirSync(drafts, { recursive: true });
  const draft = { reference: DRAFT, entries: [] };
  writeFileSync(join(drafts, draftFileName(DRAFT) + DRAFT_END), encodeDraft({ draft, manifests: new Map() }));
  for (const shell of Object.keys(SHELLS)) {
    const { stdout, stderr, exitCode } = await run(process.execPath, [BIN, 'completion', shell]);
    expect({ stderr, exitCode }).toEqual({ stderr: '', exitCode: 0 });
    writeFileSync(join(folder, `script.${shell}`), stdout);
  }
});

let terminal: Terminal | undefined;
afterEach(() => {
  terminal?.stop();
  terminal = undefined;
});

describe.each(Object.entries(SHELLS))('typed in %s', (shell, { start, load }) => {
  const lacks = [findProgram(shell) === undefined ? shell : '', HAS_TERMINAL ? '' : 'tmux'].filter(Boolean);
  const title = 'what Tab makes of it';

  it.skipIf(lacks.length > 0)(lacks.length > 0 ? `${title} (not installed: ${lacks.join(', ')})` : title, async () => {
    terminal = openTerminal(start, { columns: 120, cwd: folder, env: { HOME: folder, PS1: '> ', ZDOTDIR: folder } });
    const { type, key, until } = terminal;
    const last = (text: string) => text.split('\n').at(-1) ?? '';
    await until((text) => text.trim() !== '');
    type(`${load}; clear`);
    key('Enter');
    type('echo lo""aded');
    key('Enter');
    // fish throws away what is typed before it has shown its prompt.
    await until((text) => /\bloaded\b/.test(text) && last(text).endsWith('>'));
    for (const [typed, made] of [
      ['manifest-publish ins', 'manifest-publish inspect '],
      ['manifest-publish registry ser', 'manifest-publish registry serve '],
      ['manifest-publish publish --expect-pl', 'manifest-publish publish --expect-platforms '],
      ['manifest-publish push --type=o', 'manifest-publish push --type=oci '],
      ['manifest-publish rm loc', `manifest-publish rm ${DRAFT} `],
      ['manifest-publish rm localhost:5000/debian/debian:d', `manifest-publish rm ${DRAFT} `],
      ['manifest-publish rm -- localhost:5', `manifest-publish rm -- ${DRAFT} `],
      ['manifest-publish publish --platform linux/ppc', 'manifest-publish publish --platform linux/ppc64le '],
      [
        'manifest-publish publish --expect-platforms linux/amd64,linux/s3',
        'manifest-publish publish --expect-platforms linux/amd64,linux/s390x',
      ],
      ['manifest-publish publish -f script.b', 'manifest-publish publish -f script.bash '],
    ] as const) {
      type(typed);
      key('Tab');
      // What was typed may stand there before the shell has looked at it.
      await until((text) => last(text).replaceAll('\\:', ':').includes(made.trimEnd()));
      key('C-u');
      key('C-l');
      await until((text) => !text.includes('manifest-publish '));
    }
  });
});

describe('completion', () => {
  it('names the shells that it knows', async () => {
    const { stderr, exitCode } = await cli(folder, ['completion', 'tcsh']);
    expect(stderr).toContain('bash, zsh, fish');
    expect(exitCode).toBe(2);
  });

  it('prints the same script where other flags have to be read', async () => {
    const { stdout, exitCode } = await cli(folder, ['--quiet', 'completion', 'bash']);
    expect(exitCode).toBe(0);
    expect(stdout).toBe((await run(process.execPath, [BIN, 'completion', 'bash'])).stdout);
  });
});
