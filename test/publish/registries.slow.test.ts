import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PROFILES } from '../../src/registry-server/index.ts';
import { selfSigned } from '../http/certificate.ts';
import { expectedOf, ROWS, type Row, SCENARIOS, type Scenario } from './registry-rows.ts';
import {
  absent,
  type Cell,
  copied,
  docker,
  expired,
  half,
  lost,
  rights,
  type Setting,
  seedAndAgain,
  shared,
  unreadable,
  unreferenced,
} from './registry-scenarios.ts';

// Every imitated registry against every scenario, through the real publish. The table is printed at the end.

const results = new Map<string, Map<Scenario, Cell>>();
let folder = '';
let tls: Setting['tls'];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'manifest-publish-test-'));
  const made = selfSigned(['127.0.0.1']);
  const file = join(folder, 'ca.pem');
  await writeFile(file, made.cert);
  tls = { ...made, file };
});

afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
  process.stdout.write(`\n${table()}\n`);
});

/** A proxy that ends TLS is only itself with TLS. */
function settingOf(row: Row): Row {
  return row.profile === 'distribution-badproxy' && tls !== undefined ? { ...row, tls } : row;
}

const OTHERS = { copied, unreferenced, rights, unreadable, half, lost, expired, shared, docker, absent };

async function runRow(row: Row): Promise<Map<Scenario, Cell>> {
  const setting = settingOf(row);
  const { seed, again } = await seedAndAgain(setting);
  const cells = new Map<Scenario, Cell>([
    ['seed', seed],
    ['again', again],
  ]);
  for (const [name, scenario] of Object.entries(OTHERS)) cells.set(name as Scenario, await scenario(setting));
  return cells;
}

describe('every registry, every scenario', () => {
  it('has a row for every profile', () => {
    expect(ROWS.map(({ profile }) => profile)).toEqual(PROFILES.map(({ name }) => name));
  });

  it.each(ROWS.map((row) => [row.profile, row] as const))('%s', async (profile, row) => {
    const cells = await runRow(row);
    results.set(profile, cells);
    const wrong = [...cells].flatMap(([name, cell]) => {
      const expected = expectedOf(row, name);
      const outcome =
        cell.outcome === expected ? [] : [`${name}: ${cell.outcome}, expected ${expected}: ${cell.message}`];
      return [...outcome, ...cell.problems.map((text) => `${name}: ${text}`)];
    });
    expect(wrong).toEqual([]);
  });
});

function table(): string {
  const rows = ROWS.filter(({ profile }) => results.has(profile)).map(({ profile }) => [
    profile,
    ...SCENARIOS.map((name) => {
      const cell = results.get(profile)?.get(name);
      return cell === undefined ? '?' : `${cell.outcome}${cell.problems.length === 0 ? '' : '!'}`;
    }),
  ]);
  const lines = [['profile', ...SCENARIOS], ...rows];
  const widths = lines[0]?.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0))) ?? [];
  const printed = lines.map((line) =>
    line
      .map((text, column) => text.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  return [...printed, '', ...footer()].join('\n');
}

/** The requests that learning the limits of a host has cost, in the scenario `copied`. */
function footer(): readonly string[] {
  return ROWS.flatMap(({ profile }) => {
    const lessons = results.get(profile)?.get('copied')?.lessons ?? [];
    const texts = lessons.map(({ request, bytes, answer }) => `${request} of ${bytes} bytes, ${answer}`);
    return texts.length === 0 ? [] : [`${profile} was learnt by: ${texts.join('; ')}`];
  });
}
