import type { Target } from '../target.ts';
import { DOCUMENT_TARGETS } from './documents.ts';
import { FILE_TARGETS } from './files.ts';
import { HEADER_TARGETS } from './headers.ts';
import { LOGIN_TARGETS } from './logins.ts';
import { NAMES_TARGETS } from './names.ts';
import { PLACE_TARGETS } from './places.ts';
import { SPEC_TARGETS } from './specs.ts';
import { TEXT_TARGETS } from './texts.ts';

/** Every parser of text that others write. */
export const TARGETS: readonly Target[] = [
  ...NAMES_TARGETS,
  ...HEADER_TARGETS,
  ...TEXT_TARGETS,
  ...DOCUMENT_TARGETS,
  ...LOGIN_TARGETS,
  ...FILE_TARGETS,
  ...PLACE_TARGETS,
  ...SPEC_TARGETS,
];
