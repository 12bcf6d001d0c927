import { describe, expect, it } from 'vitest';
import { plainBooleans } from '../../src/cli/booleans.ts';

const FLAGS = {
  purge: { type: 'boolean', char: 'p' },
  json: { type: 'boolean' },
  tag: { type: 'option', char: 't' },
} as const;

describe('booleans as docker takes them', () => {
  it.each([
    [
      ['--purge=true', 'x', '--json=1'],
      ['--purge', 'x', '--json'],
    ],
    [['--purge=false', 'x', '-p=F'], ['x']],
    [
      ['-p=T', 'x', '--purge'],
      ['-p', 'x', '--purge'],
    ],
    [
      ['--tag=true', '-t=false', '--other=true', 'a=true'],
      ['--tag=true', '-t=false', '--other=true', 'a=true'],
    ],
    [
      ['--tag', '--purge=false', '-t', '--json=x'],
      ['--tag', '--purge=false', '-t', '--json=x'],
    ],
    [
      ['--purge', '--', '--purge=false'],
      ['--purge', '--', '--purge=false'],
    ],
  ])('%j is %j', (argv, plain) => {
    expect(plainBooleans(argv, FLAGS)).toEqual(plain);
  });

  it.each(['--purge=', '--purge=yes', '-p=no'])('%s is refused by its name', (word) => {
    expect(() => plainBooleans([word], FLAGS)).toThrow(`${word.replace(/=.*/, '')} must be true or false`);
  });
});
