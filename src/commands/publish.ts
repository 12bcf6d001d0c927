import { string as argument } from '@oclif/core/args';
import { BaseCommand } from '../cli/base-command.ts';
import { NETWORK_FLAGS, PUBLISH_FLAGS } from '../cli/flags.ts';
import { settingsOfFlags } from '../cli/publish-flags.ts';
import { publishInput } from '../cli/publish-inputs.ts';
import { checkInputs } from '../cli/publish-usage.ts';
import { digestLines, referenceLines } from '../cli/report-files.ts';
import { runPublish } from '../cli/run-publish.ts';
import type { Session } from '../cli/session.ts';
import { partOfRun, runPart } from '../cli/shard.ts';
import { page, reportDocument } from '../ui/render.ts';

/** One shot, without local state: resolve, plan, transfer, push the index, move the tags. */
export class Publish extends BaseCommand {
  static override usage = [
    '<%= command.id %> TARGET SOURCE... [FLAG...]',
    '<%= command.id %> -f SPEC [-f SPEC]... [FLAG...]',
  ];
  static override summary = 'Publish one multi-arch reference from images in other repositories.';
  static override description =
    `Reads the sources, mounts their blobs into the repository of TARGET, copies what the registry does not mount, pushes the images and the index, and moves the tag last. What is already there is not sent again, so the same command finishes a run that was cut off.

A SOURCE that is a multi-arch image itself is taken in with all its images, or with the one of PLATFORM. A bare sha256:... means the repository of TARGET. oci:DIR[:TAG] is an OCI image layout on this machine, as SOURCE, TARGET and --tag.

With --file one or many lists are published from spec files, with one memory of what is in place. With --digests-dir and --from-metadata a job joins what builds of other jobs have pushed by digest.

Credentials are those of docker login. The digest of the index goes to stdout, and nothing else; with --file a line REFERENCE DIGEST for each tag.`;
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
    {
      description: 'Publish the lists of a spec file; those that fail do not stop the others.',
      command: '<%= config.bin %> <%= command.id %> -f lists.yaml --keep-going --report report.json',
    },
    {
      description: 'The first of two parts of the lists, for one of two machines; report merge joins the reports.',
      command: '<%= config.bin %> <%= command.id %> -f lists.yaml --shard 1/2 --keep-going --report 1.json',
    },
    {
      description: 'Join images that were pushed by digest, under the tags of docker/metadata-action.',
      command: [
        '<%= config.bin %> <%= command.id %> --digests-dir digests',
        '--from-metadata env:DOCKER_METADATA_OUTPUT_JSON',
        '--expect-platforms linux/amd64,linux/arm64',
      ].join('\n      '),
    },
    {
      description: 'Images whose names follow a pattern.',
      command: [
        '<%= config.bin %> <%= command.id %> localhost:5000/debian/debian:bullseye',
        '--template localhost:5000/debian/ARCH:bullseye --platforms linux/amd64,linux/s390x',
      ].join('\n      '),
    },
  ];
  static override args = {
    // One for both: oclif takes no optional argument before one that repeats, and with --file there is neither.
    target: argument({
      multiple: true,
      ignoreStdin: true,
      description:
        'Reference to publish, HOST/REPOSITORY:TAG or oci:DIR:TAG; after it each SOURCE, an image to list, [PLATFORM=]REF.',
    }),
  };
  static override flags = { ...PUBLISH_FLAGS, ...NETWORK_FLAGS };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(Publish);
    const [target, ...sources] = args.target ?? [];
    checkInputs(target, sources, flags);
    const settings = settingsOfFlags(flags, this.world.env);
    const part = runPart(flags, this.world.env);
    const words = { target, sources, tags: flags.tag ?? [] };
    const input = await publishInput(words, flags, settings, this.world);
    // Every word is read before a connection is opened; what the configuration adds are checked values.
    const host = input.requests({})[0]?.targets[0]?.host ?? '';

    const work = async (session: Session) => {
      for (const text of input.notes) session.ports.emit({ kind: 'warning', text });
      const { listing } = input;
      const all = input.requests(session.config);
      const { requests, notes, lists } = await partOfRun(all, part);
      for (const text of notes) this.note(flags, (theme) => page([text], theme));
      return runPublish(requests, session, flags, { listing, keepGoing: flags['keep-going'], part, lists });
    };
    const workers = part.shard?.total ?? 1;
    const published = await this.withGithub(flags, input.listing, () =>
      this.withSession(flags, host, work, { workers }),
    );

    const { report, failure } = published;
    // A shard without lists has said so.
    if (report.lists.length > 0) this.noteOutcome(flags, published);
    if (failure !== undefined) {
      // What was done stays done: scripts that go through the lines find it, and the exit code tells the rest.
      if (input.listing && !flags.json) await this.result(flags, undefined, referenceLines(report));
      throw failure;
    }
    await this.result(flags, reportDocument(report), input.listing ? referenceLines(report) : digestLines(report));
  }
}
