import { fuzzing } from './suite.ts';
import { DOCUMENT_TARGETS } from './targets/documents.ts';
import { FILE_TARGETS } from './targets/files.ts';
import { LOGIN_TARGETS } from './targets/logins.ts';
import { SPEC_TARGETS } from './targets/specs.ts';

fuzzing([...DOCUMENT_TARGETS, ...LOGIN_TARGETS, ...FILE_TARGETS, ...SPEC_TARGETS]);
