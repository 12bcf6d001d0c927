import fc from 'fast-check';
import { expect, test } from 'vitest';
import { PublishError } from '../../src/errors.ts';
import type { Platform } from '../../src/model/descriptor.ts';
import type { PublishReport } from '../../src/publish/report.ts';
import {
  renderError,
  renderInspection,
  renderPlan,
  renderSummary,
  renderVerification,
  renderWarnings,
} from '../../src/ui/render.ts';
import { danger, hostileText } from './hostile.ts';
import * as sample from './samples.ts';

/** A registry chooses both: what it says, and what stands in its documents. */
type Hostile = { readonly text: string; readonly platform: Platform };

const hostile: fc.Arbitrary<Hostile> = fc.record({
  text: hostileText,
  platform: fc.record({ os: hostileText, architecture: hostileText, variant: hostileText, 'os.version': hostileText }),
});

function reportOf({ text, platform }: Hostile, lists: number): PublishReport {
  const list = {
    ...sample.LIST,
    targets: sample.LIST.targets.map((target) => ({ ...target, reference: text })),
    images: sample.LIST.images.map((image) => ({
      ...image,
      source: text,
      platform,
      placed: image.placed.map((place) => ({
        ...place,
        repository: text,
        blobs: place.blobs.map((blob) => ({ ...blob, why: text })),
      })),
    })),
  };
  return { ...sample.REPORT, warnings: [text], lists: Array.from({ length: lists }, () => list) };
}

const DOCUMENTS: Readonly<Record<string, (hostile: Hostile) => string>> = {
  plan: ({ text, platform }) => {
    const images = sample.PLAN.images.map((image) => ({ ...image, source: text, platform }));
    return renderPlan({ ...sample.PLAN, target: text, images }, sample.WIDE);
  },
  summary: (it) => renderSummary(reportOf(it, 1), sample.WIDE),
  'summary of many': (it) => renderSummary(reportOf(it, 2), sample.NARROW),
  tree: ({ text, platform }) => {
    const children = (sample.INSPECTION.children ?? []).map((child) => ({ ...child, mediaType: text, platform }));
    return renderInspection({ ...sample.INSPECTION, reference: text, mediaType: text, children }, sample.WIDE);
  },
  verification: ({ text }) => {
    const problems = sample.BROKEN.problems.map((problem) => ({ ...problem, what: text }));
    return renderVerification({ ...sample.BROKEN, reference: text, problems }, sample.WIDE);
  },
  warnings: ({ text }) => renderWarnings([text], sample.WIDE),
  error: ({ text }) => {
    const error = new PublishError('DENIED', text, text, { registry: text, repository: text, side: 'target' });
    const tag = { kind: 'tag.done', reference: text, digest: sample.digest('x'), action: 'created' } as const;
    return renderError(error, sample.WIDE, { tags: [tag], debug: true });
  },
  bug: ({ text }) => renderError(Object.assign(new Error(text), { name: text }), sample.WIDE, { debug: true }),
};

test.each(Object.entries(DOCUMENTS))('%s holds nothing a terminal or a runner acts on', (_, render) => {
  fc.assert(
    fc.property(hostile, (it) => {
      expect(danger(render(it))).toBeUndefined();
    }),
    { numRuns: 200 },
  );
});
