import { string as argument } from '@oclif/core/args';
import { boolean } from '@oclif/core/flags';
import { BaseCommand } from '../cli/base-command.ts';
import { dockerText } from '../cli/docker-text.ts';
import { NETWORK_FLAGS } from '../cli/flags.ts';
import type { CommonFlags } from '../cli/settings.ts';
import { parseReference } from '../model/reference.ts';
import type { Inspection } from '../publish/findings.ts';
import { renderInspection } from '../ui/render.ts';

/** Shows one reference. */
export class Inspect extends BaseCommand {
  static override usage = '<%= command.id %> REF [FLAG...]';
  static override summary = 'Show an image or a multi-arch index.';
  static override description =
    `Prints what docker manifest inspect prints, or with a flag the exact bytes, the digest, or a tree. One request, unless --tree reads the images below an index too.`;
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
      description: 'The digest alone, for scripts.',
      command: '<%= config.bin %> <%= command.id %> --digest localhost:5000/debian/amd64:bullseye',
    },
  ];
  static override args = {
    ref: argument({
      required: true,
      ignoreStdin: true,
      description: 'Image or index, HOST/REPOSITORY[:TAG][@DIGEST].',
    }),
  };
  static override flags = {
    raw: boolean({
      exclusive: ['digest', 'tree', 'json'],
      description: 'Print the bytes exactly as the registry sent them.',
    }),
    digest: boolean({ exclusive: ['tree', 'json'], description: 'Print the digest.' }),
    tree: boolean({ description: 'Print the images below an index, or the blobs of an image.' }),
    ...NETWORK_FLAGS,
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(Inspect);
    const reference = parseReference(args.ref);
    const inspection = await this.withSession(flags, reference.host, async ({ ports, signal }) => {
      const { inspect } = await import('../publish/inspect.ts');
      return inspect(reference, { tree: flags.tree }, ports, signal);
    });
    await this.result(flags, documentOf(inspection), this.text(flags, inspection));
  }

  private text(
    flags: CommonFlags & { readonly raw: boolean; readonly digest: boolean; readonly tree: boolean },
    inspection: Inspection,
  ): string | Uint8Array {
    if (flags.raw) return inspection.bytes;
    if (flags.digest) return `${inspection.digest}\n`;
    return flags.tree ? renderInspection(inspection, this.theme(flags)) : dockerText(inspection);
  }
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
