import fc from 'fast-check';

/**
 * The gate must say the same of the same commit, so generated inputs start from one seed. `FC_SEED=random` draws fresh
 * ones (the long lane does), `FC_SEED=<number>` repeats a run; a seed that found something becomes a named test.
 */
const wanted = process.env['FC_SEED'] ?? '20261130';
if (wanted !== 'random') fc.configureGlobal({ seed: Number(wanted) });
