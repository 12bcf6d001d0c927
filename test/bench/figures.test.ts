import { describe, expect, it } from 'vitest';
import { toScript } from '../../bench/command.ts';
import { diffCalls, expectedCalls } from '../../bench/expected.ts';
import { type Run, SITUATIONS } from '../../bench/measure.ts';
import { firstErrorLine } from '../../bench/outcome.ts';
import { allPeers, type FoundPeer } from '../../bench/peers.ts';
import { median, renderTable } from '../../bench/table.ts';

const sum = (calls: Readonly<Record<string, number>> = {}) => Object.values(calls).reduce((a, b) => a + b, 0);

describe('expected requests', () => {
  it.each([
    ['ours', [106, 178, 25]],
    ['ours-no-verify', [66, 178, 17]],
    ['ours-drafts', [106, 186, 25]],
  ])('of %s are the promised sums', (peer, sums) => {
    expect(SITUATIONS.map(({ id }) => sum(expectedCalls(peer, id)))).toEqual(sums);
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

  it('takes medians, sets others in proportion to ours and gives a failing peer no ratio', () => {
    if (situation === undefined) throw new Error('no situation');
    const text = renderTable(situation, [
      { peer: peer('ours'), runs: [run(1, 10), run(3, 10), run(2, 10)] },
      { peer: peer('crane'), runs: [run(4, 25)] },
      { peer: peer('docker'), runs: [run(1, 5, 'exit 1: error')] },
    ]);
    expect(text).toContain('| manifest-publish 1.2.3 | right | 2.00 | 1.00–3.00 | 1.0 | 10 | 1.0 |');
    expect(text).toContain('| crane index append 1.2.3 | right | 4.00 | 4.00–4.00 | 2.0 | 25 | 2.5 |');
    expect(text).toContain('| docker manifest 1.2.3 | fails | 1.00 | 1.00–1.00 |  | 5 |  |');
    expect(text).toContain('- docker manifest fails: `exit 1: error`');
  });

  it('gives no ratio to a run of ours that failed', () => {
    if (situation === undefined) throw new Error('no situation');
    const rows = [
      { peer: peer('ours'), runs: [run(1, 10, 'no list')] },
      { peer: peer('crane'), runs: [run(4, 25)] },
    ];
    expect(renderTable(situation, rows)).toContain(
      '| crane index append 1.2.3 | right | 4.00 | 4.00–4.00 |  | 25 |  |',
    );
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
