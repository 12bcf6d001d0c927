import type { Setting } from './registry-scenarios.ts';

/** Columns of the table, after section 5.3 of what is known of registries. */
export const SCENARIOS = [
  'seed',
  'again',
  'copied',
  'unreferenced',
  'rights',
  'unreadable',
  'half',
  'lost',
  'expired',
  'shared',
  'docker',
  'absent',
] as const;

export type Scenario = (typeof SCENARIOS)[number];

/** `done`, or the exit code where this registry can never accept it. */
export type Expected = 'done' | number;

export type Row = Setting & { readonly expected?: Partial<Record<Scenario, Expected>> };

/** Nobody may read the source: everywhere the same. */
const ALWAYS: Partial<Record<Scenario, Expected>> = { unreadable: 3 };

const never = (code: number): Partial<Record<Scenario, Expected>> => ({
  ...Object.fromEntries(SCENARIOS.map((name) => [name, code])),
  ...ALWAYS,
});

/** A repository that must exist is named, and we do not make it. */
const MUST_EXIST = { absent: 4 } as const;

/** Every profile, and what each scenario comes to there; what is not said is `done`. */
export const ROWS: readonly Row[] = [
  { profile: 'spec' },
  { profile: 'spec-strict' },
  { profile: 'ecr-off', expected: MUST_EXIST },
  { profile: 'ecr-mounting', expected: MUST_EXIST },
  { profile: 'ecr-immutable', expected: MUST_EXIST },
  // A cut connection says nothing: all that can be told is where it happened.
  { profile: 'ecr-reset', expected: { absent: 5 } },
  { profile: 'ecr-public', expected: MUST_EXIST },
  { profile: 'ecr-public-limited', expected: MUST_EXIST },
  { profile: 'docker-hub' },
  { profile: 'ghcr' },
  { profile: 'ghcr-ignore' },
  { profile: 'ghcr-slow' },
  { profile: 'gar' },
  { profile: 'acr' },
  { profile: 'acr-ignore' },
  { profile: 'acr-20mb' },
  { profile: 'quay' },
  { profile: 'quay-old' },
  { profile: 'distribution-v3' },
  { profile: 'distribution-v2' },
  { profile: 'distribution-token' },
  { profile: 'distribution-relative' },
  { profile: 'gitlab' },
  { profile: 'harbor' },
  // It shows what was written 1.5 s later, and is asked again after 1, 2 and 4 s.
  { profile: 'nexus', hurry: 4500 },
  { profile: 'nexus-redeploy', hurry: 4500 },
  { profile: 'artifactory' },
  { profile: 'artifactory-2019' },
  { profile: 'gitea' },
  { profile: 'zot', expected: { docker: 5 } },
  { profile: 'crane' },
  { profile: 'serverless-2024' },
  { profile: 'serverless' },
  { profile: 'distribution-badproxy' },
  { profile: 'distribution-mirror', expected: never(5) },
  { profile: 'harbor-proxy', expected: never(3) },
  // At 1/1024 its megabyte would not let a manifest through.
  { profile: 'nginx-1m', scale: 1 / 16 },
  { profile: 'cloudflare-100m' },
];

export function expectedOf(row: Row, scenario: Scenario): Expected {
  return { ...ALWAYS, ...row.expected }[scenario] ?? 'done';
}
