import { boolean, string } from '@oclif/core/flags';
import { BaseCommand } from '../cli/base-command.ts';
import { COMMON_FLAGS } from '../cli/flags.ts';
import { type CommonFlags, count, nearestHint, usage } from '../cli/settings.ts';
import { PublishError } from '../errors.ts';
import type {
  JournalEntry,
  NamedProfile,
  RegistryOptions,
  RunningRegistry,
  SeededImage,
} from '../registry-server/index.ts';
import { page, tableLines, untrusted } from '../ui/render.ts';

const DEFAULT_PORT = '5000';
/** The one user that the registry starts with. */
const USER = 'robot';
const PASSWORD = 'secret';

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
      command: '<%= config.bin %> <%= command.id %> --profile ecr-public --seed debian --port 0',
    },
    { description: 'What it can imitate.', command: '<%= config.bin %> <%= command.id %> --list-profiles' },
  ];
  static override baseFlags = {
    ...COMMON_FLAGS,
    debug: boolean({ helpGroup: 'GLOBAL', description: 'Write one line per request that was answered to stderr.' }),
    // Taken, as they may stand before any command, and not shown: there is no progress, and nothing to configure.
    progress: string({ hidden: true, description: 'Without effect.' }),
    config: string({ hidden: true, description: 'Without effect.' }),
  };
  static override flags = {
    profile: string({ helpValue: 'NAME', description: 'Registry to imitate. [default: spec]' }),
    'list-profiles': boolean({ description: 'Print the profiles, when and how each was seen, and end.' }),
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
      throw unknownProfile(profile, names);
    }
    if (flags.seed !== undefined && flags.seed !== 'debian')
      throw usage('--seed must be debian', 'Write --seed debian.');
    const port = count({ name: '--port', text: flags.port ?? DEFAULT_PORT }, 0, 65_535, 5001);

    const disk = flags.disk === undefined ? {} : { disk: flags.disk };
    const registry = await start(startRegistry, { profile, port, ...disk, ...this.told(flags) });
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

  /** With --debug, every request as it is answered. */
  private told(flags: CommonFlags): Pick<RegistryOptions, 'onEntry'> {
    if (!flags.debug) return {};
    return { onEntry: (entry) => this.note(flags, (theme) => page([requestLine(entry)], theme)) };
  }
}

/** Method, path, status, and what a mount came to. The query is shown of mounts alone: elsewhere it may be signed. */
function requestLine({ method, path, query, operation, status }: JournalEntry): string {
  const answer = status === undefined ? 'cut off' : String(status);
  if (operation !== 'mount') return untrusted(`${method} ${path} ${answer}`);
  const came = status === 201 ? 'mounted' : 'not mounted';
  return untrusted(`${method} ${path}?${query} ${answer} ${came}`);
}

/** Whoever wrote the beginning of a name meant one of those that begin so. */
function unknownProfile(profile: string, names: readonly string[]): PublishError {
  const list = 'Run manifest-publish registry serve --list-profiles.';
  const begun = profile === '' ? [] : names.filter((name) => name.startsWith(profile));
  const hint = begun.length === 0 ? nearestHint(profile, names, list) : `Did you mean ${begun.join(', ')}? ${list}`;
  // Only what can be a name is shown back.
  return usage(/^[a-z][a-z0-9.-]{0,30}$/.test(profile) ? `no profile "${profile}"` : 'no such profile', hint);
}

async function start(
  startRegistry: (options: RegistryOptions) => Promise<RunningRegistry>,
  options: RegistryOptions,
): Promise<RunningRegistry> {
  try {
    return await startRegistry(options);
  } catch (error) {
    if (!(error instanceof Error) || !('code' in error)) throw error;
    const listening = 'syscall' in error && error.syscall === 'listen';
    const what = listening ? `port ${options.port}` : `folder ${options.disk}`;
    const message = `cannot serve the registry: ${what} (${String(error.code)})`;
    throw new PublishError('FILE_FAILED', message, listening ? portAdvice(error.code) : DISK_ADVICE, { cause: error });
  }
}

const DISK_ADVICE = 'Name a folder that you may write to, or one that can be made: --disk DIR.';

function portAdvice(code: unknown): string {
  const other = 'choose another port, such as --port 0 for a free one';
  return code === 'EADDRINUSE'
    ? `End what listens there, perhaps another registry serve that still runs, or ${other}.`
    : `C${other.slice(1)}.`;
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

function notes(registry: RunningRegistry, profile: string, seeded: readonly SeededImage[]): readonly string[] {
  const local = localName(registry);
  const images = seeded.map((image) => `  ${nameOf(registry, image)}`);
  return [
    `serving ${registry.url} (${local}) with profile ${profile}, until interrupted`,
    ...(registry.profile.auth.scheme === 'none' ? [] : logins(registry, local)),
    ...(['404nameUnknown', 'reset'].includes(registry.profile.repo.missing)
      ? [`  ${repositories(local, seeded)}`]
      : []),
    ...images,
  ];
}

/** Where a push makes no repository there would be none to publish to. */
function repositories(local: string, seeded: readonly SeededImage[]): string {
  return seeded.length === 0
    ? 'a push makes no repository here: with --seed debian there is debian/debian to publish to'
    : `a push makes no repository here: publish to ${local}/debian/debian, which is there and empty`;
}

/** The name of the help's examples: logins go by the name that is used. */
function localName(registry: RunningRegistry): string {
  return registry.host.replace(/^127\.0\.0\.1:/, 'localhost:');
}

function logins(registry: RunningRegistry, local: string): readonly string[] {
  const auth = Buffer.from(`${USER}:${PASSWORD}`).toString('base64');
  const auths = { [registry.host]: { auth }, [local]: { auth } };
  return [
    `  user ${USER}, password ${PASSWORD}: docker login ${local}, or without docker:`,
    `  export DOCKER_AUTH_CONFIG='${JSON.stringify({ auths })}'`,
  ];
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
