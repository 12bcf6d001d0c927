import { string as argument } from '@oclif/core/args';
import { boolean } from '@oclif/core/flags';
import { annotations } from '../cli/annotations.ts';
import { BaseCommand } from '../cli/base-command.ts';
import { type Drafts, dockerNotes, type FoundDraft, listReference, noSuchManifest, openDrafts } from '../cli/drafts.ts';
import { INDEX_FLAGS, NETWORK_FLAGS } from '../cli/flags.ts';
import { digestLines } from '../cli/report-files.ts';
import { distinct, furtherTag } from '../cli/request.ts';
import { runPublish } from '../cli/run-publish.ts';
import type { Session } from '../cli/session.ts';
import { type CommonFlags, indexType } from '../cli/settings.ts';
import { PublishError } from '../errors.ts';
import { parseDigest } from '../model/digest.ts';
import { formatReference, parseReference, type Reference, repositoryName } from '../model/reference.ts';
import type { PublishReport } from '../publish/report.ts';
import { errorDocument, renderWarnings, reportDocument } from '../ui/render.ts';

/** `docker manifest push` */
export class Push extends BaseCommand {
  static override usage = '<%= command.id %> LIST [FLAG...]';
  static override summary = 'Push a draft, as docker manifest push does, on any registry.';
  static override description =
    `Does what publish does, with the images and the platforms of the draft that create has made: mounts what the registry mounts, copies the rest, and moves the tag last. Prints docker's lines on stdout, the digest of the list last. The draft stays unless --purge drops it.

Where there is no draft of that name, docker's own is taken: after a docker manifest push that died with "error mounting" this finishes the job. Its files are only read.`;
  static override examples = [
    {
      description: 'Push a draft (after: manifest-publish create localhost:5000/debian/debian:draft ...).',
      command: '<%= config.bin %> <%= command.id %> localhost:5000/debian/debian:draft',
    },
    {
      description: 'Under another tag too, and drop the draft when that is done.',
      command: '<%= config.bin %> <%= command.id %> --purge localhost:5000/debian/debian:draft --tag latest',
    },
  ];
  static override args = {
    list: argument({ required: true, ignoreStdin: true, description: 'Draft to push, and where to.' }),
  };
  static override flags = {
    purge: boolean({ char: 'p', description: 'Drop the draft when it has been pushed.' }),
    ...INDEX_FLAGS,
    ...NETWORK_FLAGS,
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(Push);
    const list = listReference(args.list);
    const name = formatReference(list);
    const [, ...tags] = distinct([list, ...(flags.tag ?? []).map((tag) => furtherTag(tag, list))]);
    const expectDigest = flags['expect-digest'];
    const options = {
      tags,
      annotations: annotations(flags.annotation ?? [], 'index', this.world.env),
      dryRun: flags['dry-run'],
      verify: !flags['no-verify'],
      noClobber: flags['no-clobber'],
      ...(expectDigest === undefined ? {} : { expectDigest: parseDigest(expectDigest) }),
    };
    const type = flags.type === undefined ? undefined : indexType(flags.type);
    const drafts = await openDrafts(this.world);
    const draft = await drafts.find(name);
    if (draft === undefined) throw noSuchManifest(name, `Make it with manifest-publish create ${name} SOURCE...`);
    const dockers = draft.origin === 'docker' ? 'same' : await drafts.compare(draft.stored.draft);
    const changed = `docker has changed its own draft of ${name} since this one was taken over: what it changed is not pushed; to push docker's, run manifest-publish rm ${name} first`;
    const warnings = [...dockerNotes(name, draft, 'this pushes'), ...(dockers === 'changed' ? [changed] : [])];
    this.note(flags, (theme) => renderWarnings(warnings, theme));

    const { pushRequest } = await import('../store/push-request.ts');
    const run = async (session: Session) => {
      const { config, ports, signal } = session;
      if (draft.origin === 'docker') {
        const { staleEntries } = await import('../cli/stale-entries.ts');
        const stale = await staleEntries(draft.stored.draft.entries, ports, signal);
        for (const text of stale) ports.emit({ kind: 'warning', text });
      }
      const request = pushRequest(draft.stored.draft, {
        ...options,
        type: type ?? config.type ?? 'auto',
        foreignLayers: config.foreignLayers ?? false,
      });
      return runPublish([request], session, flags, { known: draft.stored.manifests });
    };
    const published = await this.withGithub(flags, false, () => this.withSession(flags, list.host, run)).catch(
      (error: unknown) => {
        throw error instanceof PublishError ? inDockersWords(error) : error;
      },
    );
    this.noteOutcome(flags, published);
    if (published.failure !== undefined) throw inDockersWords(published.failure);
    const { report } = published;
    const failure =
      flags.purge && !report.dryRun ? await this.purge(flags, drafts, draft, dockers !== 'none') : undefined;
    const text = `${pushedLines(report, [list, ...tags])}${digestLines(report)}`;
    // The list is there in any case: its digest is told, and then what could not be dropped.
    const document = reportDocument(report);
    await this.result(flags, failure === undefined ? document : { ...document, ...errorDocument(failure) }, text);
    if (failure === undefined) return;
    if (!flags.json) throw failure;
    this.world.setExitCode(failure.exitCode);
  }

  /** Drops what was pushed. What another process has made of it meanwhile stays, and so does docker's own. */
  private async purge(
    flags: CommonFlags,
    { own }: Drafts,
    { stored, origin }: FoundDraft,
    dockerHasOne: boolean,
  ): Promise<PublishError | undefined> {
    const { draft } = stored;
    const stays: string[] = [];
    try {
      const now = origin === 'own' ? await own.read(draft.reference) : undefined;
      if (now !== undefined && JSON.stringify(now.draft) !== JSON.stringify(draft)) {
        stays.push(`the draft of ${draft.reference} was changed while it was pushed, and stays`);
      } else await own.remove(draft.reference);
    } catch (error) {
      if (error instanceof PublishError) return error;
      throw error;
    }
    if (dockerHasOne)
      stays.push(`docker's own draft of ${draft.reference} stays: docker manifest rm ${draft.reference}`);
    this.note(flags, (theme) => renderWarnings(stays, theme));
    return undefined;
  }
}

/** For a manifest that is refused scripts look for docker's phrase; which one it was follows it, as it does there. */
function inDockersWords(error: PublishError): PublishError {
  if (error.code !== 'MANIFEST_REFUSED') return error;
  return error.with({ message: `failed to put manifest ${error.message.replace(/^writing /, '')}` });
}

/** Docker's line for each image that came from another repository, in the order of the list; for each target repository. */
function pushedLines(report: PublishReport, targets: readonly Reference[]): string {
  if (report.dryRun) return '';
  const images = report.lists.flatMap((list) => list.images);
  const repositories = [...new Set(targets.map(repositoryName))];
  const lines = repositories.flatMap((repository) =>
    images.map(({ source, digest }) => {
      const from = parseReference(source);
      const own = repositoryName(from) === repository;
      return own ? '' : `Pushed ref ${repository}@${digest} with digest: ${digest}\n`;
    }),
  );
  return lines.join('');
}
