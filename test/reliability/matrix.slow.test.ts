import { ROWS } from './matrix-rows.ts';
import { runRows } from './matrix-run.ts';

runRows(ROWS);
