import { string as argument } from '@oclif/core/args';
import { boolean } from '@oclif/core/flags';
import { BaseCommand } from '../cli/base-command.ts';
import { NETWORK_FLAGS } from '../cli/flags.ts';
import { PublishError } from '../errors.ts';
import { isLayoutHost, layoutFolder, parseReference } from '../model/reference.ts';
import type { Verification } from '../publish/findings.ts';
import { errorDocument, renderVerification } from '../ui/render.ts';

/** Checks that a registry has everything a reference needs. */
export class Verify extends BaseCommand {
  static override usage = '<%= command.id %> REF [FLAG...]';
  static override summary = 'Check that everything a reference needs is in the registry.';
  static override description =
    `Reads and hashes every manifest below REF, in a registry or in an OCI image layout on this machine (oci:DIR[:TAG]), and asks for every blob. With --deep the blobs are downloaded and hashed too. Ends with exit code 6 when something is missing or wrong.`;
  static override examples = [
    {
      description: 'Ask for every blob (after: manifest-publish registry serve --seed debian).',
      command: '<%= config.bin %> <%= command.id %> localhost:5000/debian/amd64:bullseye',
    },
    {
      description: 'Download and hash them.',
      command: '<%= config.bin %> <%= command.id %> --deep localhost:5000/debian/amd64:bullseye',
    },
  ];
  static override args = {
    ref: argument({
      required: true,
      ignoreStdin: true,
      description: 'Image or index, HOST/REPOSITORY[:TAG][@DIGEST] or oci:DIR[:TAG][@DIGEST].',
    }),
  };
  static override flags = {
    deep: boolean({ description: 'Download and hash every blob.' }),
    ...NETWORK_FLAGS,
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(Verify);
    const reference = parseReference(args.ref);
    const found = await this.withSession(flags, reference.host, async ({ ports, signal }) => {
      const { verify } = await import('../publish/verify.ts');
      return verify(reference, { deep: flags.deep }, ports, signal);
    });
    const text = renderVerification(found, this.theme(flags));
    if (found.problems.length === 0) return this.result(flags, found, text);

    const failure = new PublishError(
      'VERIFY_FAILED',
      `${found.reference} is broken: ${found.problems.length} of its parts missing or wrong`,
      isLayoutHost(reference.host) ? layoutHint(reference.host, found) : REGISTRY_HINT,
      { side: 'target', registry: reference.host, repository: reference.repository },
    );
    // One document holds both: what was found, and the error that every failure has.
    await this.result(flags, { ...found, ...errorDocument(failure) }, text);
    if (!flags.json) throw failure;
    this.world.setExitCode(failure.exitCode);
  }
}

/** A manifest that is there is trusted for its blobs, and a mounted blob may be a link to where it came from. */
const REGISTRY_HINT =
  'Publish it again if a manifest is missing; if a blob is, push its image again, here and to the repository it came from.';

/** A file of the right size counts as there, whatever it holds: only one that is gone is written anew. */
function layoutHint(host: string, { problems }: Verification): string {
  const digests = [...new Set(problems.filter(({ damaged }) => damaged === true).map(({ digest }) => digest))];
  const [first, ...more] = digests.map((digest) => `${layoutFolder(host)}/blobs/${digest.replace(':', '/')}`);
  if (first === undefined) return 'Publish it again: what is missing is written anew.';
  const others = more.length === 0 ? '' : `, and those of the ${more.length} others that are wrong`;
  return `Remove the file ${first}${others}; then publish it again.`;
}
