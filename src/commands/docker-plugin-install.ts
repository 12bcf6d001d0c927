import { join, resolve } from 'node:path';
import { boolean, string } from '@oclif/core/flags';
import { BaseCommand } from '../cli/base-command.ts';
import { installPlugin, PLUGIN_NAME, type PluginChange, uninstallPlugin } from '../cli/docker-plugin.ts';
import { usage } from '../cli/settings.ts';
import { dockerFolder } from '../store/folder.ts';
import { page } from '../ui/render.ts';

/** Makes `docker mpublish` work. */
export class DockerPluginInstall extends BaseCommand {
  static override usage = '<%= command.id %> [FLAG...]';
  static override summary = 'Make docker mpublish work, as a plugin of the docker client.';
  static override description =
    `Links this program into the folder of docker's plugins, so that docker mpublish publish, create, push and all other commands do what manifest-publish does. The link goes to where this program is installed; after it has moved, run the same command again.

The path of the link goes to stdout. Something else in its place is left alone, unless --force is given. On Windows docker runs only .exe files.`;
  static override examples = [
    { description: 'For this user.', command: '<%= config.bin %> <%= command.id %>' },
    {
      description: 'For all users of this machine.',
      command: 'sudo <%= config.bin %> <%= command.id %> --dir /usr/local/lib/docker/cli-plugins',
    },
    { description: 'Take it away again.', command: '<%= config.bin %> <%= command.id %> --uninstall' },
  ];
  static override flags = {
    dir: string({
      helpValue: 'DIR',
      description: 'Folder of plugins. [default: $DOCKER_CONFIG/cli-plugins, or ~/.docker/cli-plugins]',
    }),
    uninstall: boolean({ description: 'Remove the link.' }),
    force: boolean({ description: 'Replace or remove what is not ours, too.' }),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(DockerPluginInstall);
    const { world } = this;
    // As left by a variable that is not set; as a path it would be the folder that we are in.
    if (flags.dir === '') throw usage('--dir needs the name of a folder', 'Write for example --dir=DIR.');
    const folder =
      flags.dir === undefined
        ? join(dockerFolder(world.env, world.home()), 'cli-plugins')
        : resolve(world.folder(), flags.dir);
    const program = world.program();
    const { platform, token } = world;
    const action = flags.uninstall
      ? await uninstallPlugin(program, folder, flags.force)
      : await installPlugin(program, folder, { platform, force: flags.force, token: token() });
    const path = join(folder, PLUGIN_NAME);
    this.note(flags, (theme) => page([SAID[action]], theme));
    await this.result(flags, { path, program, action }, action === 'absent' ? '' : `${path}\n`);
  }
}

const SAID: Readonly<Record<PluginChange, string>> = {
  installed: 'installed: try docker mpublish --help',
  unchanged: 'installed already: try docker mpublish --help',
  removed: 'removed',
  absent: 'there is no plugin of ours to remove',
};
