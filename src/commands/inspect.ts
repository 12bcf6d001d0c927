import { string as argument } from '@oclif/core/args';
import { boolean } from '@oclif/core/flags';
import { BaseCommand } from '../cli/base-command.ts';
import { type FoundDraft, imageReference, noSuchManifest, openDrafts, sourceRequest } from '../cli/drafts.ts';
import { NETWORK_FLAGS } from '../cli/flags.ts';
import { type CommonFlags, type NetworkFlags, usage } from '../cli/settings.ts';
import { PublishError } from '../errors.ts';
import { isIndexType } from '../model/descriptor.ts';
import { formatReference, type Reference } from '../model/reference.ts';
import type { InspectedChild, Inspection } from '../publish/findings.ts';
import { dockerDraftImage, dockerList, dockerText, dockerVerbose } from '../ui/docker-text.ts';
import { page, renderInspection, renderWarnings } from '../ui/render.ts';

type Flags = CommonFlags &
  NetworkFlags & {
    readonly raw: boolean;
    readonly digest: boolean;
    readonly tree: boolean;
    readonly verbose: boolean;
    readonly remote: boolean;
    readonly local: boolean;
  };

/** Something of a draft, ready to be shown in whichever way is asked for. */
type Shown = {
  readonly origin: FoundDraft['origin'];
  readonly inspection: () => Inspection;
  readonly text: () => string;
  readonly verbose: () => string;
};

/** Shows one reference, or a draft of this machine: `docker manifest inspect`, and more. */
export class Inspect extends BaseCommand {
  static override usage = '<%= command.id %> [LIST] REF [FLAG...]';
  static override summary = 'Show an image, a multi-arch index, or a draft.';
  static override description =
    `Prints what docker manifest inspect prints, or with a flag the exact bytes, the digest, or a tree. A draft of that name on this machine comes first, then one of docker's own, then the registry; stderr says which of the two it was. With LIST and REF the entry REF of the draft LIST is shown.

REF may be an OCI image layout on this machine, oci:DIR[:TAG].

One request, unless --tree or --verbose reads the images below an index too.`;
  static override examples = [
    {
      description: 'As docker manifest inspect prints it (after: manifest-publish registry serve --seed debian).',
      command: '<%= config.bin %> <%= command.id %> localhost:5000/debian/amd64:bullseye',
    },
    {
      description: 'By platform, with sizes and shared layers.',
      command: '<%= config.bin %> <%= command.id %> --tree localhost:5000/debian/amd64:bullseye',
    },
    {
      description: 'The digest alone, for scripts; what the registry has, whatever drafts there are.',
      command: '<%= config.bin %> <%= command.id %> --remote --digest localhost:5000/debian/amd64:bullseye',
    },
  ];
  static override args = {
    ref: argument({
      required: true,
      ignoreStdin: true,
      description:
        'Image, index or draft, HOST/REPOSITORY[:TAG][@DIGEST] or oci:DIR[:TAG][@DIGEST]; the draft when a second one follows.',
    }),
    entry: argument({ required: false, ignoreStdin: true, description: 'The source within the draft.' }),
  };
  static override flags = {
    raw: boolean({
      exclusive: ['digest', 'tree', 'json', 'verbose'],
      description: 'Print the bytes exactly as the registry sent them; of a draft, as push would send them.',
    }),
    digest: boolean({ exclusive: ['tree', 'json', 'verbose'], description: 'Print the digest.' }),
    tree: boolean({
      exclusive: ['verbose'],
      description: 'Print the images below an index and which are missing, or the blobs of an image.',
    }),
    verbose: boolean({
      char: 'v',
      exclusive: ['json'],
      description: 'Print every image with its platform and its manifest, as docker manifest inspect -v does.',
    }),
    remote: boolean({ exclusive: ['local'], description: 'Ask the registry, also when there is a draft.' }),
    local: boolean({ description: 'Look at drafts only.' }),
    ...NETWORK_FLAGS,
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(Inspect);
    const reference = imageReference(args.ref);
    if (args.entry !== undefined && flags.remote) {
      throw usage('--remote with an entry: registries have no drafts', 'Leave --remote out, or name one reference.');
    }
    const draft = flags.remote ? undefined : await this.draft(flags, reference, args.entry !== undefined);
    if (args.entry !== undefined) {
      const source = formatReference(sourceRequest(args.entry, reference).reference);
      const shown = await entryOf(draft, source, formatReference(reference));
      if (draft?.origin === 'docker') this.tell(flags, formatReference(reference), draft);
      return this.show(flags, shown);
    }
    if (draft !== undefined) {
      this.tell(flags, formatReference(reference), draft);
      return this.show(flags, await listOf(draft));
    }
    if (flags.local) {
      throw noSuchManifest(formatReference(reference), 'Run manifest-publish ls to see the drafts that are there.');
    }
    return this.remote(flags, reference);
  }

  /** A store that cannot be read ends it only when nothing but a draft can be meant; docker too goes on to the registry. */
  private async draft(flags: Flags, reference: Reference, only: boolean): Promise<FoundDraft | undefined> {
    const { find } = await openDrafts(this.world);
    try {
      return await find(formatReference(reference));
    } catch (error) {
      if (!(error instanceof PublishError) || only || flags.local) throw error;
      this.note(flags, (theme) => renderWarnings([`${error.message}; this is what the registry has`], theme));
      return undefined;
    }
  }

  /** Which of the two local ones it is; docker says nothing, and people wonder why the registry has something else. */
  private tell(flags: Flags, reference: string, draft: FoundDraft): void {
    const whose = draft.origin === 'docker' ? "docker's own draft" : 'the draft of this machine';
    const text = `this is ${whose} of ${reference}; --remote shows what the registry has`;
    this.note(flags, (theme) => page([text], theme) + renderWarnings(draft.warnings, theme));
  }

  private async show(flags: Flags, { origin, inspection, text, verbose }: Shown): Promise<void> {
    if (flags.json) return this.result(flags, { draft: origin, ...documentOf(inspection()) }, '');
    const plain = !flags.raw && !flags.digest && !flags.tree;
    const shown = flags.verbose ? verbose() : plain ? text() : this.text(flags, inspection());
    return this.result(flags, undefined, shown);
  }

  private async remote(flags: Flags, reference: Reference): Promise<void> {
    try {
      await this.withSession(flags, reference.host, async ({ ports, signal }) => {
        if (flags.verbose) {
          const { readDockerImages } = await import('../cli/inspect-docker.ts');
          const images = await readDockerImages(reference, ports, signal);
          return () => this.result(flags, undefined, dockerVerbose(images));
        }
        const { inspect } = await import('../publish/inspect.ts');
        const inspection = await inspect(reference, { tree: flags.tree }, ports, signal);
        return () => {
          this.tellMissing(flags, inspection);
          return this.result(flags, documentOf(inspection), this.text(flags, inspection));
        };
      }).then((print) => print());
    } catch (error) {
      if (!(error instanceof PublishError) || error.code !== 'MANIFEST_NOT_FOUND') throw error;
      throw error.with({ message: `no such manifest: ${error.message}` });
    }
  }

  private tellMissing(flags: Flags, { reference, children = [] }: Inspection): void {
    const all = withNested(children);
    const missing = all.filter(({ kind }) => kind === 'missing').length;
    if (missing === 0) return;
    const text = `${missing} of ${all.length} manifests are missing: run manifest-publish verify ${reference}`;
    this.note(flags, (theme) => renderWarnings([text], theme));
  }

  private text(flags: Flags, inspection: Inspection): string | Uint8Array {
    if (flags.raw) return inspection.bytes;
    if (flags.digest) return `${inspection.digest}\n`;
    return flags.tree ? renderInspection(inspection, this.theme(flags)) : dockerText(inspection);
  }
}

async function listOf({ stored, origin }: FoundDraft): Promise<Shown> {
  const { draftImages, draftInspection } = await import('../cli/inspect-draft.ts');
  const images = draftImages(stored);
  return {
    origin,
    inspection: () => draftInspection(stored),
    text: () => dockerList(images.map(({ descriptor, platform }) => ({ ...descriptor, platform }))),
    verbose: () => dockerVerbose(images),
  };
}

/** One entry of a draft: an image, or for a source that is an index a list. */
async function entryOf(found: FoundDraft | undefined, source: string, list: string): Promise<Shown> {
  const entry = found?.stored.draft.entries.find(({ reference }) => reference === source);
  if (found === undefined || entry === undefined) {
    const hint =
      found === undefined
        ? `There is no draft of ${list}: run manifest-publish ls to see those that are there.`
        : `Run manifest-publish inspect -v ${list} to see what the draft lists.`;
    throw noSuchManifest(source, hint);
  }
  const { entryImages, entryInspection } = await import('../cli/inspect-draft.ts');
  const { manifests } = found.stored;
  const images = entryImages(entry, manifests);
  const [only] = images;
  const image = isIndexType(entry.root.mediaType) ? undefined : only;
  return {
    origin: found.origin,
    inspection: () => entryInspection(entry, manifests),
    text: () =>
      image === undefined
        ? dockerList(images.map(({ descriptor, platform }) => ({ ...descriptor, platform })))
        : dockerDraftImage(image),
    verbose: () => dockerVerbose(image ?? images),
  };
}

/** Everything below an index. */
function withNested(children: readonly InspectedChild[]): readonly InspectedChild[] {
  return children.flatMap((child) => [child, ...withNested(child.children ?? [])]);
}

/** For `--json`: the document as JSON beside what is known of it. */
function documentOf({ reference, digest, mediaType, bytes, children }: Inspection): object {
  return {
    reference,
    digest,
    mediaType,
    size: bytes.byteLength,
    manifest: JSON.parse(new TextDecoder().decode(bytes)),
    ...(children === undefined ? {} : { children }),
  };
}
