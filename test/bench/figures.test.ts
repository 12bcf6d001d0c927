import { describe, expect, it } from 'vitest';
import { toScript } from '../../bench/command.ts';
import { diffCalls, expectedCalls } from '../../bench/expected.ts';
import { judgeLimits } from '../../bench/limits.ts';
import type { Run } from '../../bench/measure.ts';
import { firstErrorLine } from '../../bench/outcome.ts';
import { allPeers, type FoundPeer } from '../../bench/peers.ts';
import type { Section } from '../../bench/sections.ts';
import { MAIN_SITUATIONS, SITUATIONS } from '../../bench/situations.ts';
import { median, renderTable } from '../../bench/table.ts';

const sum = (calls: Readonly<Record<string, number>> = {}) => Object.values(calls).reduce((a, b) => a + b, 0);

describe('expected requests', () => {
  it.each([
    ['ours', [106, 178, 25]],
    ['ours-no-verify', [66, 178, 17]],
    ['ours-drafts', [106, 186, 25]],
  ])('of %s are the promised sums', (peer, sums) => {
    expect(MAIN_SITUATIONS.map((id) => sum(expectedCalls(peer, id)))).toEqual(sums);
  });

  it('count a read that was given up like one that came to its end', () => {
    expect(diffCalls({ 'blob GET': 3 }, { 'blob GET': 1, 'blob GET 0': 2 })).toEqual([]);
    expect(diffCalls({ 'blob GET': 3 }, { 'blob GET': 2, 'blob GET 0': 2 })).toHaveLength(2);
  });

  it('differ by class, with the sum first', () => {
    expect(diffCalls({ 'blob GET': 8, ping: 0 }, { 'blob GET': 9, ping: 1 })).toEqual([
      '10 requests instead of 8',
      'blob GET: 9 instead of 8 (+1)',
      'ping: 1 instead of 0 (+1)',
    ]);
  });

  it('differ also when only the classes do', () => {
    expect(diffCalls({ 'blob GET': 1 }, { 'blob HEAD': 1 })).toHaveLength(3);
    expect(diffCalls({ 'blob GET': 1 }, { 'blob GET': 1 })).toEqual([]);
  });
});

describe('toScript', () => {
  it('runs steps in turn and lets the last command take the place of the shell', () => {
    expect(toScript([[['a', "it's"]], [['b']]])).toBe("'a' 'it'\\''s'\nexec 'b'");
  });

  it('waits for each command of a step by itself, so that one failure fails the step', () => {
    expect(toScript([[['a'], ['b']], [['c']]])).toBe("'a' & p0=$!\n'b' & p1=$!\nwait $p0\nwait $p1\nexec 'c'");
  });
});

describe('table', () => {
  const [situation] = SITUATIONS;
  if (situation === undefined) throw new Error('no situation');
  const section: Section = { situation, delay: 100, auth: 'none' };
  const peer = (id: string): FoundPeer => {
    const [found] = allPeers('/nowhere').filter((one) => one.id === id);
    if (found === undefined) throw new Error(`no peer ${id}`);
    return { ...found, tool: { path: id, version: '1.2.3' } };
  };
  const run = (seconds: number, requests: number, why?: string): Run => ({
    outcome: why === undefined ? { kind: 'right' } : { kind: 'fails', why },
    seconds,
    cpuSeconds: undefined,
    peakRssBytes: 2 * 1024 * 1024,
    exitCode: why === undefined ? 0 : 1,
    traffic: {
      requests,
      longestChain: 2,
      mostInFlight: 3,
      connections: 4,
      tlsHellos: 0,
      bytesUp: 0,
      bytesDown: 0,
      calls: {},
    },
  });

  it('takes medians and sets them in proportion to the floor and to the fastest peer of one command', () => {
    const rows = [
      { peer: peer('ours'), runs: [run(1, 10), run(3, 10), run(2, 10)] },
      { peer: peer('floor'), runs: [run(0.5, 9)] },
      { peer: peer('crane'), runs: [run(8, 25)] },
      { peer: peer('buildx'), runs: [run(9, 25)] },
      { peer: peer('oras-at-once'), runs: [run(4, 25)] },
      { peer: peer('skopeo'), runs: [run(4, 25)] },
      { peer: peer('regctl'), runs: [run(1, 5, 'exit 1: error')] },
    ];
    const text = renderTable({ ...section, rows });
    expect(text).toContain('| manifest-publish 1.2.3 | right | 2.00 | 1.00–3.00 | 0.25 | 4.0 | 10 |');
    expect(text).toContain('| crane index append 1.2.3 | right | 8.00 | 8.00–8.00 | 1.0 | 16 | 25 |');
    expect(text).toContain('| skopeo copy each (no list) 1.2.3 | copies only | 4.00 |');
    expect(text).toContain('| regctl index create 1.2.3 | fails | 1.00 | 1.00–1.00 |  |  | 5 |');
    expect(text).toContain('- regctl index create fails: `exit 1: error`');
    expect(text).toContain('The floor: 4 round trips, 0.40 s');
    expect(text).toContain('Best peer of one command: crane index append; we are 4.0 times as fast.');
  });

  it('gives no ratio to a run of ours that failed', () => {
    const rows = [
      { peer: peer('ours'), runs: [run(1, 10, 'no list')] },
      { peer: peer('crane'), runs: [run(4, 25)] },
    ];
    const text = renderTable({ ...section, rows });
    expect(text).toContain('| manifest-publish 1.2.3 | fails | 1.00 | 1.00–1.00 |  |  | 10 |');
    expect(text).not.toContain('we are');
  });

  describe('limits', () => {
    const at = (delay: number, ours: number, crane: number, change: Partial<Section> = {}) => ({
      ...section,
      delay,
      ...change,
      rows: [
        { peer: peer('ours'), runs: [run(ours, 10)] },
        { peer: peer('crane'), runs: [run(crane, 25)] },
        { peer: peer('oras-at-once'), runs: [run(ours, 25)] }, // not one command
        { peer: peer('buildx'), runs: [run(ours, 25, 'wrong')] },
      ],
    });
    const met = (...sections: Parameters<typeof judgeLimits>[0]) => judgeLimits(sections).map((limit) => limit.met);

    it('at 100 ms are seconds and a ratio to the fastest peer of one command that gets it right', () => {
      expect(met(at(100, 0.8, 3.6))).toEqual([true, true]);
      expect(met(at(100, 0.81, 3.6))).toEqual([false, false]);
    });

    it('at 20 ms are a ratio, at 0 ms what we may be behind', () => {
      expect(met(at(20, 0.5, 1), at(0, 0.4, 0.2))).toEqual([true, true]);
      expect(met(at(20, 0.5, 0.99), at(0, 0.41, 0.2))).toEqual([false, false]);
    });

    it('with tokens are two round trips', () => {
      const longer = (chain: number) => {
        const [ours] = at(100, 1, 4).rows;
        const runs = ours?.runs.map((one) => ({ ...one, traffic: { ...one.traffic, longestChain: chain } })) ?? [];
        return { ...section, auth: 'token' as const, rows: [{ peer: peer('ours'), runs }] };
      };
      expect(met(at(100, 0.5, 4), longer(4))).toEqual([true, true, true]);
      expect(met(at(100, 0.5, 4), longer(5))).toEqual([true, true, false]);
    });

    it('are not spoken of where we failed or nothing is promised', () => {
      const failed = { ...section, rows: [{ peer: peer('ours'), runs: [run(0.1, 10, 'wrong')] }] };
      expect(met(failed, at(50, 1, 2))).toEqual([]);
    });
  });

  it('takes the mean of the middle two of an even number', () => {
    expect(median([1, 2, 10, 4])).toBe(3);
  });
});

describe('firstErrorLine', () => {
  it('finds the line that speaks of an error and leaves the address of the run out', () => {
    const output = 'Created\nerror mounting 127.0.0.1:4000/debian/amd64 to 127.0.0.1:4000/debian/x\nusage';
    expect(firstErrorLine(output, '127.0.0.1:4000')).toBe('error mounting debian/amd64 to debian/x');
  });

  it('takes the message out of a logrus line', () => {
    expect(firstErrorLine('time="2026" level=error msg="it failed"', 'h')).toBe('it failed');
  });
});
