import { string as argument } from '@oclif/core/args';
import { boolean, string } from '@oclif/core/flags';
import { BaseCommand } from '../cli/base-command.ts';
import { NETWORK_FLAGS } from '../cli/flags.ts';
import { mountExpectation, mountFailure, oneRegistry } from '../cli/mount-check.ts';
import { PublishError } from '../errors.ts';
import type { BrokenMountCheck } from '../publish/mount-check-report.ts';
import { errorDocument, renderMountCheck } from '../ui/render.ts';

/** Tells how a registry answers mounts. */
export class MountCheck extends BaseCommand {
  static override usage = '<%= command.id %> TARGET-REPO SOURCE-REPO[:TAG] [FLAG...]';
  static override summary = 'Tell how a registry answers mounts from one repository into another.';
  static override description =
    `Mounts the config of SOURCE into TARGET-REPO, without and with the name of the source, and prints what came back and what publish does with such a registry. A registry that mounts keeps that config; an upload session that it opens instead is cancelled.

VERDICT is one of
  existence   what the source repository has is mounted, as the OCI specification has it
  referenced  only what a manifest of the source repository names is mounted (Amazon ECR)
  discovery   mounted without being told where from
  never       not mounted: an upload session is opened instead
  mounts      one of the first two; --write tells which

With --write a small blob is uploaded to SOURCE-REPO and its mount asked for, before and after a manifest there names it. All of it is deleted again where the registry allows that; the output lists what stays.

Ends with exit code 5 when the answers do not tell, such as a mount that is denied, and with 6 when --expect names another verdict.`;
  static override examples = [
    {
      description: 'Ask with what is there (after: manifest-publish registry serve --seed debian).',
      command: '<%= config.bin %> <%= command.id %> localhost:5000/debian/debian localhost:5000/debian/amd64:bullseye',
    },
    {
      description: 'Whether a manifest has to name a blob before it is mounted; fail unless existence is enough.',
      command: [
        '<%= config.bin %> <%= command.id %> --write --expect existence',
        'localhost:5000/debian/debian localhost:5000/debian/amd64:bullseye',
      ].join('\n      '),
    },
  ];
  static override args = {
    target: argument({
      required: true,
      ignoreStdin: true,
      description: 'Repository to mount into, HOST/REPOSITORY; a tag is not looked at.',
    }),
    source: argument({
      required: true,
      ignoreStdin: true,
      description: 'Image to mount from, HOST/REPOSITORY[:TAG]; of an index the first image is taken.',
    }),
  };
  static override flags = {
    write: boolean({ description: 'Ask with a blob of its own, which takes a right to push to SOURCE-REPO.' }),
    expect: string({ helpValue: 'VERDICT', description: 'End with exit code 6 when the verdict is another.' }),
    ...NETWORK_FLAGS,
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(MountCheck);
    const expected = mountExpectation(flags.expect);
    const { target, source } = oneRegistry(args.target, args.source);
    let broken: BrokenMountCheck | undefined;
    const check = await this.withSession(flags, target.host, async ({ ports, signal }) => {
      const { checkMounts } = await import('../publish/mount-check.ts');
      const onFailure = (what: BrokenMountCheck) => {
        broken = what;
      };
      return checkMounts(target, source, { write: flags.write === true, onFailure }, ports, signal);
    }).catch((error: unknown) => {
      if (broken === undefined || !flags.json || !(error instanceof PublishError)) throw error;
      return error;
    });
    if (check instanceof PublishError) {
      this.world.setExitCode(check.exitCode);
      return this.result(flags, { ...broken, ...errorDocument(check) }, '');
    }
    const text = renderMountCheck(check, this.theme(flags));
    const failure = mountFailure(check, expected);
    if (failure === undefined) return this.result(flags, check, text);

    // One document holds both: what was found, and the error that every failure has.
    await this.result(flags, { ...check, ...errorDocument(failure) }, text);
    if (!flags.json) throw failure;
    this.world.setExitCode(failure.exitCode);
  }
}
