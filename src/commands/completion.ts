import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { string as argument } from '@oclif/core/args';
import { BaseCommand } from '../cli/base-command.ts';
import { choice } from '../cli/settings.ts';

const SHELLS = ['bash', 'zsh', 'fish'] as const;

/** The scripts are made at build time and lie in `lib/completion`; `bin/run.js` prints them without loading us. */
export class Completion extends BaseCommand {
  static override usage = '<%= command.id %> bash|zsh|fish';
  static override summary = 'Print the script that completes commands in a shell.';
  static override description =
    `Prints a script that completes commands, flags and their values, platforms, files, and the names of drafts where one is meant. It needs nothing but the shell: drafts are looked up without starting this program.

For bash and zsh it is loaded with source <(manifest-publish completion SHELL), in .bashrc or in .zshrc after compinit.`;
  static override examples = [
    { description: 'In this bash, for a try.', command: 'source <(<%= config.bin %> <%= command.id %> bash)' },
    {
      description: 'In every fish from now on.',
      command: '<%= config.bin %> <%= command.id %> fish > ~/.config/fish/completions/<%= config.bin %>.fish',
    },
  ];
  static override args = {
    shell: argument({ required: true, options: [...SHELLS], ignoreStdin: true, description: 'bash, zsh or fish.' }),
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(Completion);
    const shell = choice({ name: 'SHELL', text: args.shell }, SHELLS);
    const script = await readFile(join(dirname(dirname(this.world.program())), 'lib', 'completion', shell), 'utf8');
    await this.result(flags, { shell, script }, script);
  }
}
