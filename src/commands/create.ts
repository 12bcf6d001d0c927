import { string as argument } from '@oclif/core/args';
import { boolean } from '@oclif/core/flags';
import { BaseCommand } from '../cli/base-command.ts';
import { draftDocument } from '../cli/draft-document.ts';
import { listReference, openDrafts, sourceRequest } from '../cli/drafts.ts';
import { NETWORK_FLAGS } from '../cli/flags.ts';
import { PublishError } from '../errors.ts';
import { formatReference } from '../model/reference.ts';

/** `docker manifest create` */
export class Create extends BaseCommand {
  static override usage = '<%= command.id %> LIST SOURCE... [FLAG...]';
  static override summary = 'Start a list on this machine, as docker manifest create does.';
  static override description =
    `Reads the sources and keeps a draft of LIST on this machine, for annotate and push. Nothing is written to a registry, and nothing is kept unless every source was read.

A SOURCE that is a multi-arch image itself is taken in with all its images, or with the one of PLATFORM; of any other image PLATFORM is what annotate would say. A bare sha256:... means the repository of LIST. Sources may be at other registries than LIST: push copies them.`;
  static override examples = [
    {
      description: 'Two images of other repositories (after: manifest-publish registry serve --seed debian).',
      command: [
        '<%= config.bin %> <%= command.id %> localhost:5000/debian/debian:draft',
        'localhost:5000/debian/amd64:bullseye localhost:5000/debian/arm64:bullseye',
      ].join('\n      '),
    },
    {
      description: 'One more, and the sources whose tags have moved meanwhile are read again.',
      command: [
        '<%= config.bin %> <%= command.id %> --amend localhost:5000/debian/debian:draft',
        'linux/arm/v7=localhost:5000/debian/armhf:bullseye',
      ].join('\n      '),
    },
  ];
  static override args = {
    list: argument({ required: true, ignoreStdin: true, description: 'Reference that push will write.' }),
    source: argument({
      required: true,
      multiple: true,
      ignoreStdin: true,
      description: 'Images to list, [PLATFORM=]REF.',
    }),
  };
  static override flags = {
    amend: boolean({
      char: 'a',
      exclusive: ['replace'],
      description: 'Add to a draft that is there. Sources whose tags have moved are read again, annotations stay.',
    }),
    replace: boolean({ description: 'Start afresh when a draft is there.' }),
    ...NETWORK_FLAGS,
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(Create);
    const list = listReference(args.list);
    const sources = args.source.map((text) => sourceRequest(text, list));
    const mode = flags.amend ? 'amend' : flags.replace ? 'replace' : 'new';
    const draft = await this.withSession(flags, list.host, async ({ ports, signal }) => {
      const { createDraft } = await import('../cli/create-draft.ts');
      return createDraft({ list, sources, mode }, await openDrafts(this.world, signal), ports, signal);
    }).catch((error: unknown) => {
      throw error instanceof PublishError && error.code === 'SOURCE_NOT_FOUND'
        ? error.with({ message: `no such manifest: ${error.message}` })
        : error;
    });
    await this.result(flags, draftDocument(draft), `Created manifest list ${formatReference(list)}\n`);
  }
}
