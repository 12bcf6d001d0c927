import { ANSWERS } from './matrix-answers.ts';
import { AUTH } from './matrix-auth.ts';
import type { Row } from './matrix-case.ts';
import { CONTENT } from './matrix-content.ts';
import { MOUNTS } from './matrix-mounts.ts';
import { TAGS } from './matrix-tags.ts';
import { TRANSPORT } from './matrix-transport.ts';

/** The fault matrix: every row of it that runs in this process. */
export const ROWS: readonly Row[] = [...TRANSPORT, ...CONTENT, ...AUTH, ...MOUNTS, ...ANSWERS, ...TAGS].sort(
  (one, other) => one.number - other.number,
);
