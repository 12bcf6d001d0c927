import type { Row } from './matrix-case.ts';

/** A row that is tested somewhere else, or by the built program: what the table says of it. */
export type ToldRow = Pick<Row, 'number' | 'fault' | 'promise'> & { readonly exits: string; readonly where: string };

/** Rows of this machine, and those that have suites of their own. */
export const ELSEWHERE: readonly ToldRow[] = [
  {
    number: 44,
    fault: 'two publishers of one tag with the same content',
    promise: 'both end well',
    exits: '0',
    where: 'matrix-program.slow.test.ts',
  },
  {
    number: 46,
    fault: '`kill -9` before or after any request',
    promise: 'the same command, run again, ends as if nothing had happened',
    exits: '0 (again)',
    where: 'kills.slow.test.ts',
  },
  {
    number: 48,
    fault: 'a full disk, a store that may not be written to',
    promise: 'said, with the file; what was there stays whole',
    exits: '8',
    where: 'matrix-program.slow.test.ts; test/store/failures.test.ts',
  },
  {
    number: 49,
    fault: 'a damaged draft, a store that is a symbolic link, two writers at once',
    promise: 'a draft is checked when it is read; a lock keeps writers apart',
    exits: '8, or 0',
    where: 'matrix-program.slow.test.ts; test/store/lock.test.ts',
  },
  {
    number: 50,
    fault: 'a credential helper that is missing, fails, prints 10 MB or nonsense, or never ends',
    promise: 'the end, with its name; never without a login instead, and no login of what it printed',
    exits: '3',
    where: 'matrix-program.slow.test.ts; test/auth/credentials.test.ts',
  },
  {
    number: 51,
    fault: 'a proxy that wants a login, or breaks; `NO_PROXY` in every form',
    promise: 'the proxy is named; its login is shown to nobody else',
    exits: '5',
    where: 'test/http/proxy.test.ts',
  },
  {
    number: 52,
    fault: 'a reader of stdout that goes away, no terminal, `CI=1`',
    promise: 'the work goes on to its end',
    exits: '0',
    where: 'matrix-program.slow.test.ts; test/cli/output.slow.test.ts',
  },
  {
    number: 55,
    fault: 'words of a registry that are commands of a CI runner, escapes of a terminal, or turn the text around',
    promise: 'quoted as its own, without them',
    exits: 'as without',
    where: 'matrix-program.slow.test.ts; test/ui/hostile.test.ts',
  },
];
