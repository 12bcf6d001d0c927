/** Time as it is handed in; the same shape as the ports of the policy room have. */
export interface Clock {
  /** Milliseconds of a clock that never goes back; only differences mean something. */
  now(): number;
  /** Milliseconds since 1970, for dates that a registry names. */
  epoch(): number;
  /** @throws the signal's reason when it is aborted first */
  sleep(milliseconds: number, signal: AbortSignal): Promise<void>;
}
