import { string as argument } from '@oclif/core/args';
import { annotations } from '../cli/annotations.ts';
import { BaseCommand } from '../cli/base-command.ts';
import { NETWORK_FLAGS, PUBLISH_FLAGS } from '../cli/flags.ts';
import { digestLines } from '../cli/report-files.ts';
import { type PublishOptions, publishRequest } from '../cli/request.ts';
import { runPublish } from '../cli/run-publish.ts';
import { duration, indexType, usage } from '../cli/settings.ts';
import { reportDocument } from '../ui/render.ts';

/** One shot, without local state: resolve, plan, transfer, push the index, move the tags. */
export class Publish extends BaseCommand {
  static override usage = '<%= command.id %> TARGET SOURCE... [FLAG...]';
  static override summary = 'Publish one multi-arch reference from images in other repositories.';
  static override description =
    `Reads the sources, mounts their blobs into the repository of TARGET, copies what the registry does not mount, pushes the images and the index, and moves the tag last. What is already there is not sent again, so the same command finishes a run that was cut off.

A SOURCE that is a multi-arch image itself is taken in with all its images, or with the one of PLATFORM. A bare sha256:... means the repository of TARGET.

Credentials are those of docker login. The digest of the index goes to stdout, and nothing else.`;
  static override examples = [
    {
      description: 'Join three images of other repositories (after: manifest-publish registry serve --seed debian).',
      command: [
        '<%= config.bin %> <%= command.id %> localhost:5000/debian/debian:bullseye',
        'localhost:5000/debian/amd64:bullseye localhost:5000/debian/arm64:bullseye',
        'localhost:5000/debian/armhf:bullseye',
      ].join('\n      '),
    },
    {
      description: 'Say which platform an image is for, and publish only if exactly these are there.',
      command: [
        '<%= config.bin %> <%= command.id %> localhost:5000/debian/debian:two',
        'linux/amd64=localhost:5000/debian/amd64:bullseye',
        'linux/arm64=localhost:5000/debian/arm64:bullseye',
        '--expect-platforms linux/amd64,linux/arm64',
      ].join('\n      '),
    },
    {
      description: 'See what would be done, with two more tags for the index.',
      command: [
        '<%= config.bin %> <%= command.id %> localhost:5000/debian/debian:bullseye',
        'localhost:5000/debian/amd64:bullseye --tag 11 --tag oldstable --dry-run',
      ].join('\n      '),
    },
  ];
  static override args = {
    target: argument({ required: true, ignoreStdin: true, description: 'Reference to publish, HOST/REPOSITORY:TAG.' }),
    source: argument({
      required: true,
      multiple: true,
      ignoreStdin: true,
      description: 'Images to list, [PLATFORM=]REF.',
    }),
  };
  static override flags = { ...PUBLISH_FLAGS, ...NETWORK_FLAGS };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(Publish);
    const type = flags.type === undefined ? undefined : indexType(flags.type);
    const wait = flags['wait-for-source'];
    const waitForSource = wait === undefined ? undefined : duration({ name: '--wait-for-source', text: wait });
    const expectPlatforms = flags['expect-platforms'];
    const expectDigest = flags['expect-digest'];
    const options: PublishOptions = {
      target: args.target,
      sources: args.source,
      tags: flags.tag ?? [],
      annotations: annotations(flags.annotation ?? [], 'index'),
      platforms: platformsOf(flags.platform),
      ...(expectPlatforms === undefined ? {} : { expectPlatforms: list(expectPlatforms) }),
      forcePlatform: flags['force-platform'],
      dryRun: flags['dry-run'],
      verify: !flags['no-verify'],
      noClobber: flags['no-clobber'],
      ...(expectDigest === undefined ? {} : { expectDigest }),
    };
    // Every word is read before a connection is opened; what the configuration adds are checked values.
    const host = publishRequest(options).targets[0]?.host ?? '';

    const { report, plan } = await this.withSession(flags, host, (session) => {
      const { config } = session;
      const request = publishRequest({
        ...options,
        type: type ?? config.type ?? 'auto',
        waitForSource: waitForSource ?? config.waitForSource ?? 0,
        foreignLayers: flags['foreign-layers'] || (config.foreignLayers ?? false),
      });
      return runPublish(request, session, flags);
    });

    this.noteOutcome(flags, report, plan);
    await this.result(flags, reportDocument(report), digestLines(report));
  }
}

/** A variable of a CI job that is not set must not turn a filter into no filter. */
function platformsOf(texts: readonly string[] | undefined): readonly string[] {
  const platforms = (texts ?? []).flatMap(list);
  if (texts === undefined || platforms.length > 0) return platforms;
  throw usage('--platform names no platform', 'Write for example --platform=linux/arm64, or leave it out.');
}

function list(text: string): readonly string[] {
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}
