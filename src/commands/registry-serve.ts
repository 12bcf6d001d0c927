import { boolean, string } from '@oclif/core/flags';
import { BaseCommand } from '../cli/base-command.ts';
import { count, nearestHint, usage } from '../cli/settings.ts';
import { PublishError } from '../errors.ts';
import type { NamedProfile, RegistryOptions, RunningRegistry, SeededImage } from '../registry-server/index.ts';
import { page, tableLines } from '../ui/render.ts';

const DEFAULT_PORT = '5000';

/** A registry for trying things out and for reproducing what another one does. */
export class RegistryServe extends BaseCommand {
  static override usage = '<%= command.id %> [FLAG...]';
  static override summary = 'Serve the embedded registry on this machine.';
  static override description =
    `Listens on 127.0.0.1 until it is interrupted and keeps everything in memory, or below the folder of --disk. It follows the OCI distribution spec to the letter, or imitates a known registry with --profile: whether it mounts, how it answers uploads, what it limits.

The address goes to stdout, and nothing else. Profiles that ask for credentials know the user robot with the password secret.`;
  static override examples = [
    {
      description: 'A registry with eight images of Debian, one repository for each architecture.',
      command: '<%= config.bin %> <%= command.id %> --seed debian',
    },
    {
      description: 'One that refuses every mount, as Amazon ECR Public does, on a free port.',
      command: '<%= config.bin %> <%= command.id %> --profile ecr-public --port 0',
    },
    { description: 'What it can imitate.', command: '<%= config.bin %> <%= command.id %> --list-profiles' },
  ];
  static override flags = {
    profile: string({ helpValue: 'NAME', description: 'Registry to imitate. [default: spec]' }),
    'list-profiles': boolean({ description: 'Print the profiles and end.' }),
    port: string({ helpValue: 'N', description: `Port to listen on; 0: any free one. [default: ${DEFAULT_PORT}]` }),
    disk: string({
      helpValue: 'DIR',
      description: 'Keep everything below this folder too, and start with what is there.',
    }),
    seed: string({ helpValue: 'debian', description: 'Images to start with.' }),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(RegistryServe);
    const { PROFILES, seedDebian, startRegistry } = await import('../registry-server/index.ts');
    if (flags['list-profiles']) {
      await this.result(flags, PROFILES, profileTable(PROFILES, this.theme(flags)));
      return;
    }
    const profile = flags.profile ?? 'spec';
    if (!PROFILES.some((known) => known.name === profile)) {
      const names = PROFILES.map((known) => known.name);
      throw usage('--profile names no profile', nearestHint(profile, names, 'Run registry serve --list-profiles.'));
    }
    if (flags.seed !== undefined && flags.seed !== 'debian')
      throw usage('--seed must be debian', 'Write --seed debian.');
    const port = count({ name: '--port', text: flags.port ?? DEFAULT_PORT }, 0, 65_535);

    const disk = flags.disk === undefined ? {} : { disk: flags.disk };
    const registry = await start(startRegistry, { profile, port, ...disk });
    const controller = new AbortController();
    const restoreSignals = this.world.abortOnSignals(controller);
    try {
      const seeded = flags.seed === undefined ? [] : seedDebian(registry);
      this.note(flags, (theme) => page(notes(registry, profile, seeded), theme));
      const document = {
        address: registry.host,
        url: registry.url,
        profile,
        images: seeded.map((image) => nameOf(registry, image)),
      };
      await this.result(flags, document, `${registry.host}\n`);
      await aborted(controller.signal);
    } finally {
      await registry.close();
      restoreSignals();
    }
    // Being told to stop is how a server ends: no error to report, but the exit code says by which signal.
    const reason: unknown = controller.signal.reason;
    this.world.setExitCode(reason instanceof PublishError ? reason.exitCode : 1);
  }
}

async function start(
  startRegistry: (options: RegistryOptions) => Promise<RunningRegistry>,
  options: RegistryOptions,
): Promise<RunningRegistry> {
  try {
    return await startRegistry(options);
  } catch (error) {
    if (!(error instanceof Error) || !('code' in error)) throw error;
    const what = 'syscall' in error && error.syscall === 'listen' ? `port ${options.port}` : `folder ${options.disk}`;
    throw new PublishError(
      'FILE_FAILED',
      `cannot serve the registry: ${what} (${String(error.code)})`,
      'Choose another port, such as --port 0 for a free one, or another folder.',
      { cause: error },
    );
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

function notes(registry: RunningRegistry, profile: string, seeded: readonly SeededImage[]): readonly string[] {
  const login =
    registry.profile.auth.scheme === 'none' ? [] : [`  user robot, password secret: docker login ${registry.host}`];
  const images = seeded.map((image) => `  ${nameOf(registry, image)}`);
  return [`serving ${registry.url} with profile ${profile}, until interrupted`, ...login, ...images];
}

function nameOf(registry: RunningRegistry, image: SeededImage): string {
  return `${registry.host}/${image.repository}:${image.tag}`;
}

function profileTable(profiles: readonly NamedProfile[], theme: Parameters<typeof tableLines>[2]): string {
  const columns = [
    { title: 'PROFILE' },
    { title: 'SEEN', drop: 1 },
    { title: 'BY', drop: 2 },
    { title: 'IMITATES', shrink: true },
  ];
  const rows = profiles.map(({ name, date, mark, title }) => [name, date, mark, title]);
  return page(tableLines(columns, rows, theme, ''), theme);
}
