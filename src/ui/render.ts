/** Data in, text out; the one door to the documents that commands print. */
export { flatDescriptor, reportDocument } from './documents.ts';
export { jsonText } from './json.ts';
export { type DraftLine, renderDrafts } from './render-drafts.ts';
export { type Circumstances, errorDocument, renderError, renderWarnings, type TagEvent } from './render-error.ts';
export {
  GROUP_END,
  groupStart,
  renderAnnotations,
  renderGroup,
  renderMask,
  renderOutputs,
} from './render-github.ts';
export { renderStepSummary, repositoryOf } from './render-github-summary.ts';
export { renderInspection } from './render-inspection.ts';
export { renderMountCheck } from './render-mount-check.ts';
export { type PlanEvent, renderPlan, renderSummary } from './render-report.ts';
export { renderVerification } from './render-verification.ts';
export { type Cell, type Column, renderTable, tableLines } from './table.ts';
export { untrusted } from './text.ts';
export { page, type Style, showsUnicode, type Theme, type ThemedStream, themeFor } from './theme.ts';
