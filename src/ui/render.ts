/** Data in, text out; the one door to the documents that commands print. */
export { jsonText } from './json.ts';
export { type DraftLine, renderDrafts } from './render-drafts.ts';
export { type Circumstances, errorDocument, renderError, renderWarnings } from './render-error.ts';
export { renderInspection } from './render-inspection.ts';
export { type PlanEvent, renderPlan, renderSummary } from './render-report.ts';
export { renderVerification } from './render-verification.ts';
export { type Cell, type Column, renderTable, tableLines } from './table.ts';
export { untrusted } from './text.ts';
export { page, type Style, showsUnicode, type Theme, themeFor } from './theme.ts';
