import { string as argument } from '@oclif/core/args';
import { boolean } from '@oclif/core/flags';
import { BaseCommand } from '../cli/base-command.ts';
import { imageReference, noSuchManifest, openDrafts } from '../cli/drafts.ts';
import { usage } from '../cli/settings.ts';
import { formatReference } from '../model/reference.ts';
import { renderWarnings } from '../ui/render.ts';

/** `docker manifest rm` */
export class Rm extends BaseCommand {
  static override usage = '<%= command.id %> LIST... [FLAG...]';
  static override summary = 'Drop drafts of this machine, as docker manifest rm does.';
  static override description =
    `Drops the drafts that create has made. Nothing is ever deleted from a registry, and docker's own drafts are left to docker manifest rm.

Of several LISTs those that are there are dropped; exit code 4 says that one was not.`;
  static override examples = [
    {
      description: 'Drop a draft (after: manifest-publish create localhost:5000/debian/debian:draft ...).',
      command: '<%= config.bin %> <%= command.id %> localhost:5000/debian/debian:draft',
    },
    { description: 'Drop all drafts.', command: '<%= config.bin %> <%= command.id %> --all' },
  ];
  static override args = {
    list: argument({ required: false, multiple: true, ignoreStdin: true, description: 'Drafts to drop.' }),
  };
  static override flags = { all: boolean({ description: 'Drop every draft.' }) };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(Rm);
    const lists = args.list ?? [];
    if (lists.length === 0 && !flags.all)
      throw usage('missing argument LIST', 'Name the drafts to drop, or pass --all.');
    if (lists.length > 0 && flags.all) throw usage('--all and LIST at once', 'Name drafts, or pass --all, not both.');
    const named = lists.map((text) => formatReference(imageReference(text)));
    const drafts = await openDrafts(this.world);
    const { own } = drafts;
    const { drafts: all, damaged } = flags.all ? await own.list() : { drafts: [], damaged: [] };

    const removed: string[] = [];
    const unknown: string[] = [];
    for (const reference of new Set(flags.all ? all.map((draft) => draft.reference) : named)) {
      ((await own.remove(reference)) ? removed : unknown).push(reference);
    }
    const left = damaged.map((file) => `${file} is no draft that can be read, and was left: delete it by hand`);
    this.note(flags, (theme) => renderWarnings(left, theme));
    if (unknown.length > 0 && !flags.all) throw await this.missing(unknown, drafts);
    await this.result(flags, { removed }, '');
  }

  private async missing(unknown: readonly string[], drafts: Awaited<ReturnType<typeof openDrafts>>): Promise<Error> {
    const inDocker: string[] = [];
    for (const reference of unknown)
      if ((await drafts.compare({ reference, entries: [] })) !== 'none') inDocker.push(reference);
    return noSuchManifest(
      unknown.join('; No such manifest: '),
      inDocker.length > 0
        ? `Run docker manifest rm ${inDocker.join(' ')}: that is a draft of docker's own.`
        : 'Run manifest-publish ls to see the drafts that are there.',
    );
  }
}
