import { BaseCommand } from '../cli/base-command.ts';
import { draftDocument } from '../cli/draft-document.ts';
import { openDrafts } from '../cli/drafts.ts';
import { formatPlatform } from '../model/platform.ts';
import type { Draft } from '../store/draft.ts';
import { page, renderDrafts, renderWarnings } from '../ui/render.ts';

/** The drafts that `create` has made. */
export class Ls extends BaseCommand {
  static override usage = '<%= command.id %> [FLAG...]';
  static override summary = 'List the drafts of this machine.';
  static override description =
    `Lists what create has made and rm or push --purge has not dropped: each list with its sources and the platforms of their images. Drafts of docker's own are not listed; push, annotate and inspect find them by name.`;
  static override examples = [
    { description: 'All drafts, for people.', command: '<%= config.bin %> <%= command.id %>' },
    { description: 'And for scripts.', command: '<%= config.bin %> <%= command.id %> --json' },
  ];

  async run(): Promise<void> {
    const { flags } = await this.parse(Ls);
    const [{ own }, { imagesOf, platformOf }] = await Promise.all([
      openDrafts(this.world),
      import('../store/children.ts'),
    ]);
    const { drafts, damaged } = await own.list();
    const platformsOf = ({ entries }: Draft): readonly string[] =>
      entries.flatMap(imagesOf).flatMap((child) => {
        const platform = platformOf(child);
        return platform === undefined ? [] : [formatPlatform(platform)];
      });
    const lines = drafts.map((draft) => ({
      reference: draft.reference,
      entries: draft.entries.length,
      platforms: platformsOf(draft),
    }));
    this.note(flags, (theme) =>
      renderWarnings(
        damaged.map((file) => `${file} is no draft that can be read`),
        theme,
      ),
    );
    if (drafts.length === 0) this.note(flags, (theme) => page(['no drafts on this machine'], theme));
    await this.result(flags, { drafts: drafts.map(draftDocument), damaged }, renderDrafts(lines, this.theme(flags)));
  }
}
