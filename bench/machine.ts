import { arch, availableParallelism, cpus, loadavg, platform, release, totalmem } from 'node:os';

/** What the figures were measured on. No name of a host or a user. */
export type Machine = {
  readonly cores: number;
  readonly cpu: string;
  readonly memoryGiB: number;
  readonly system: string;
  readonly node: string;
};

export function describeMachine(): Machine {
  return {
    cores: availableParallelism(),
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    memoryGiB: Math.round(totalmem() / 1024 ** 3),
    system: `${platform()} ${release()} ${arch()}`,
    node: process.version,
  };
}

/** Processes that want a core, mean of the last minute: above 1 before a run, somebody else is at work here. */
export function loadNow(): number {
  return Math.round((loadavg()[0] ?? 0) * 100) / 100;
}

/** One line for a person. */
export function formatMachine(machine: Machine): string {
  return `${machine.cores} cores (${machine.cpu}), ${machine.memoryGiB} GiB, ${machine.system}, Node ${machine.node}`;
}
