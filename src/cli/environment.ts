/** Variables of a process; a name that is not set has no value. */
export type Environment = Readonly<Record<string, string | undefined>>;
