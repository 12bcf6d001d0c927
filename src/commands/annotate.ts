import { string as argument } from '@oclif/core/args';
import { boolean, string } from '@oclif/core/flags';
import { annotations } from '../cli/annotations.ts';
import { BaseCommand } from '../cli/base-command.ts';
import { commaList } from '../cli/comma-list.ts';
import { draftDocument } from '../cli/draft-document.ts';
import { dockerNotes, listReference, openDrafts, sourceRequest } from '../cli/drafts.ts';
import { usage } from '../cli/settings.ts';
import { PublishError } from '../errors.ts';
import { formatReference } from '../model/reference.ts';
import type { Draft } from '../store/draft.ts';
import { renderWarnings } from '../ui/render.ts';

/** The flags that say something of an entry, as docker names them. */
const PLATFORM_FLAGS = ['os', 'arch', 'variant', 'os-version', 'os-features'] as const;

/** `docker manifest annotate` */
export class Annotate extends BaseCommand {
  static override usage = '<%= command.id %> LIST SOURCE [FLAG...]';
  static override summary = 'Say what a source of a draft is for, as docker manifest annotate does.';
  static override description =
    `Changes the entry SOURCE of the draft LIST on this machine: its platform and its annotations. What is said here wins over what the image says. Names of Debian and the kernel are understood and written as clients look for them (armhf is arm/v7, variant armv7 is v7).

Where there is no draft of that name, docker's own is taken over first. Its files stay as they are.`;
  static override examples = [
    {
      description: 'Say the platform (after: manifest-publish create localhost:5000/debian/debian:draft ...).',
      command: [
        '<%= config.bin %> <%= command.id %> localhost:5000/debian/debian:draft',
        'localhost:5000/debian/armhf:bullseye --os linux --arch arm --variant v7',
      ].join('\n      '),
    },
    {
      description: 'Drop the entry from the draft.',
      command: [
        '<%= config.bin %> <%= command.id %> localhost:5000/debian/debian:draft',
        'localhost:5000/debian/armhf:bullseye --remove',
      ].join('\n      '),
    },
  ];
  static override args = {
    list: argument({ required: true, ignoreStdin: true, description: 'The draft.' }),
    source: argument({ required: true, ignoreStdin: true, description: 'Its entry, as create was told it.' }),
  };
  static override flags = {
    os: string({ helpValue: 'OS', description: 'Operating system, such as linux.' }),
    arch: string({ helpValue: 'ARCH', description: 'Architecture, such as arm64.' }),
    variant: string({ helpValue: 'VARIANT', description: 'Variant of the architecture, such as v7.' }),
    'os-version': string({ helpValue: 'VERSION', description: 'Version of the operating system, for Windows.' }),
    'os-features': string({
      helpValue: 'LIST',
      multiple: true,
      multipleNonGreedy: true,
      description: 'Features of the operating system, added to those that are there. Repeatable, or with commas.',
    }),
    annotation: string({
      helpValue: 'KEY=VALUE',
      multiple: true,
      multipleNonGreedy: true,
      description: 'Annotation of the entry; the index must be an OCI index. Repeatable.',
    }),
    remove: boolean({
      exclusive: [...PLATFORM_FLAGS, 'annotation'],
      description: 'Drop the entry from the draft.',
    }),
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(Annotate);
    const list = listReference(args.list);
    const reference = formatReference(list);
    const { reference: source, platform } = sourceRequest(args.source, list);
    if (platform !== undefined) throw usage('annotate takes no PLATFORM=', 'Say it with --os, --arch and --variant.');
    const name = { source: formatReference(source), shown: { list: args.list, source: args.source } };
    const annotation = {
      platform: {
        ...(flags.os === undefined ? {} : { os: flags.os }),
        ...(flags.arch === undefined ? {} : { architecture: flags.arch }),
        ...(flags.variant === undefined ? {} : { variant: flags.variant }),
        ...(flags['os-version'] === undefined ? {} : { 'os.version': flags['os-version'] }),
        'os.features': (flags['os-features'] ?? []).flatMap((text) => commaList(text, '--os-features')),
      },
      annotations: annotations(flags.annotation ?? [], 'descriptor', this.world.env),
    };

    const [{ own, docker }, { annotateDraft, removeEntry }] = await Promise.all([
      openDrafts(this.world),
      import('../store/annotate.ts'),
    ]);
    let warnings: readonly string[] = [];
    let done: Draft | undefined;
    await own.change(reference, async (current) => {
      const imported = current === undefined ? await docker(reference) : undefined;
      const stored = current ?? imported?.stored;
      if (stored === undefined) throw noEntry(name.shown, reference);
      const changed = flags.remove
        ? { draft: removeEntry(stored.draft, name), warnings: [] }
        : annotateDraft(stored.draft, name, annotation);
      const taken = imported === undefined ? [] : dockerNotes(reference, imported, 'this takes over');
      warnings = [...taken, ...changed.warnings];
      done = changed.draft;
      return { draft: changed.draft, manifests: stored.manifests };
    });
    this.note(flags, (theme) => renderWarnings(warnings, theme));
    await this.result(flags, done && draftDocument(done), '');
  }
}

/** Docker's words; it does not tell a list that is missing from an entry that is. */
function noEntry(shown: { readonly list: string; readonly source: string }, reference: string): PublishError {
  return new PublishError(
    'DRAFT_NOT_FOUND',
    `manifest for image ${shown.source} does not exist in ${shown.list}`,
    `There is no draft of that name: manifest-publish create ${reference} SOURCE...`,
  );
}
