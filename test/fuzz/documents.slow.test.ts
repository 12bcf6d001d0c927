import { fuzzing } from './suite.ts';
import { DOCUMENT_TARGETS } from './targets/documents.ts';
import { FILE_TARGETS } from './targets/files.ts';
import { LOGIN_TARGETS } from './targets/logins.ts';

fuzzing([...DOCUMENT_TARGETS, ...LOGIN_TARGETS, ...FILE_TARGETS]);
