/** How many inputs a lane wants: the gate few, the long lane many. */
export function wantedInputs(variable: 'MP_FUZZ' | 'MP_HOSTS', gate: number): number {
  return Number(process.env[variable] ?? gate);
}

/** The seed of this run, as `FC_SEED` has it for all generated inputs; a failure names it. */
export function wantedSeed(): number {
  const said = process.env['FC_SEED'] ?? '20261130';
  return said === 'random' ? Math.floor(Math.random() * 2 ** 31) : Number(said);
}
