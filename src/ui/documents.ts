import type { Descriptor } from '../model/descriptor.ts';
import type { ListReport, PublishReport } from '../publish/report.ts';

/** A descriptor as a manifest has it: fields that we do not interpret stand beside the others. */
export function flatDescriptor({ extra, platformExtra, ...descriptor }: Descriptor): object {
  const { platform } = descriptor;
  return {
    ...descriptor,
    ...(platform === undefined ? {} : { platform: { ...platform, ...platformExtra } }),
    ...extra,
  };
}

/** The report of `--json` and `--report`: the entries of an index as they stand in the index. */
export function reportDocument(report: PublishReport): object {
  return { ...report, lists: report.lists.map(listDocument) };
}

function listDocument({ targets, content, index, images }: ListReport): object {
  if (index === undefined) return { targets, ...(content === undefined ? {} : { content }), images };
  return { targets, index: { ...index, manifests: index.manifests.map(flatDescriptor) }, images };
}
