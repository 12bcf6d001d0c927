import { describe, expect, it } from 'vitest';
import { parseArguments } from '../../bench/arguments.ts';
import { allPeers, type FoundPeer, findPeers } from '../../bench/peers.ts';
import { runsOf, type Section, sectionsOf } from '../../bench/sections.ts';

const PEERS = allPeers('/nowhere');

function asked(...argv: readonly string[]) {
  const wanted = parseArguments(
    argv,
    PEERS.map(({ id }) => id),
  );
  if (wanted === 'help') throw new Error('asked for help');
  return wanted;
}

const names = (sections: readonly Section[]) =>
  sections.map(({ auth, delay, situation }) => `${auth} ${delay} ${situation.id}`);

function peer(id: string): FoundPeer {
  const found = PEERS.find((one) => one.id === id);
  if (found === undefined) throw new Error(`no peer ${id}`);
  return { ...found, tool: { path: id, version: undefined } };
}

describe('sections', () => {
  it('are the main situations at every delay, and the rest at the longest one', () => {
    expect(names(sectionsOf(asked()))).toEqual([
      ...[0, 20].flatMap((delay) => ['mounts', 'refused', 'again'].map((id) => `none ${delay} ${id}`)),
      ...['mounts', 'refused', 'again', 'interrupted', 'interrupted-refused', 'attested'].map((id) => `none 100 ${id}`),
      ...['token', 'login'].flatMap((auth) => [`${auth} 100 mounts`, `${auth} 100 again`]),
    ]);
  });

  it('are what was named, at every delay', () => {
    const words = ['--delay', '0,7', '--auth', 'login', '--situations', 'refused,attested'];
    expect(names(sectionsOf(asked(...words)))).toEqual([
      'login 0 refused',
      'login 0 attested',
      'login 7 refused',
      'login 7 attested',
    ]);
  });

  it('are three in a hurry', () => {
    expect(names(sectionsOf(asked('--quick')))).toEqual(['none 100 mounts', 'none 100 refused', 'none 100 again']);
  });
});

describe('runs', () => {
  const section = (delay: number, situation = 'mounts', auth = 'none') => {
    const words = ['--delay', String(delay), '--situations', situation, '--auth', auth];
    const [found] = sectionsOf(asked(...words));
    if (found === undefined) throw new Error('no section');
    return found;
  };

  it.each([
    ['ours', 5, 5, 3],
    ['ours-drafts', 5, 5, 1],
    ['floor', 5, 5, 3],
    ['crane', 3, 5, 1],
    ['regctl', 1, 5, 1],
    ['oras-at-once', 3, 3, 1],
    ['docker', 1, 3, 1],
    ['skopeo', 1, 3, 0],
  ])('of %s are %i at 100 ms, %i at 0 ms, %i where no limit is set', (id, slow, fast, other) => {
    const wanted = asked();
    expect(runsOf(wanted, section(100), peer(id))).toBe(slow);
    expect(runsOf(wanted, section(0), peer(id))).toBe(fast);
    expect(runsOf(wanted, section(100, 'interrupted'), peer(id))).toBe(other);
  });

  it('are none for slow peers that are logged in, and for all but four in a hurry', () => {
    expect(runsOf(asked(), section(100, 'mounts', 'login'), peer('docker'))).toBe(0);
    expect(runsOf(asked(), section(100, 'mounts', 'token'), peer('docker'))).toBe(1);
    expect(runsOf(asked(), section(100, 'mounts', 'login'), peer('crane'))).toBe(1);
    expect(runsOf(asked('--quick'), section(100), peer('regctl'))).toBe(0);
    expect(runsOf(asked('--quick'), section(100), peer('crane'))).toBe(1);
  });

  it('are as many as were asked for, of whom was asked for', () => {
    expect(runsOf(asked('--only', 'skopeo'), section(100, 'attested'), peer('skopeo'))).toBe(1);
    expect(runsOf(asked('--quick', '--only', 'regctl'), section(100), peer('regctl'))).toBe(1);
    expect(runsOf(asked('--runs', '9'), section(100), peer('docker'))).toBe(9);
  });
});

describe('arguments', () => {
  it.each([
    [['--auth', 'basic'], '--auth: no "basic"; there are none, token, login'],
    [['--delay', '1,x'], '--delay: not a number from 0: x'],
    [['--situations', 'warm'], '--situations: no "warm"'],
    [['--faster'], "Unknown option '--faster'"],
  ])('%j are refused', (argv, message) => {
    expect(() => asked(...argv)).toThrow(message);
  });
});

describe('peers', () => {
  it('that are missing are named, with how to get them', async () => {
    const here = async (binaries: readonly string[]) =>
      binaries.includes('crane') || binaries.includes('node') ? { path: 'x', version: '1' } : undefined;
    const { found, absent, hints } = await findPeers(PEERS, here);
    expect(found.map(({ id }) => id)).toEqual(['ours', 'ours-no-verify', 'ours-drafts', 'floor', 'crane']);
    expect(absent).toHaveLength(PEERS.length - found.length);
    expect(hints).toContain('regctl: go install github.com/regclient/regclient/cmd/regctl@v0.11.7');
  });
});
