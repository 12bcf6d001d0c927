import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  cycles,
  importOffences,
  lengthOffences,
  type Module,
  packageOffences,
  type Rule,
  readModule,
  wayTo,
  worldOffences,
} from './helpers/architecture.ts';

/** The import table of docs/architecture.md. */
const RULES: Readonly<Record<string, Rule>> = {
  errors: { values: [] },
  model: { values: ['errors'] },
  http: { values: ['model', 'errors'] },
  auth: { values: ['http', 'model', 'errors'] },
  registry: { values: ['model', 'http', 'auth', 'errors'] },
  'oci-layout': { values: ['model', 'errors'], types: ['registry'] },
  publish: { values: ['model', 'errors', 'http/retry'], types: ['registry'] },
  spec: { values: ['model', 'errors'], types: ['publish'] },
  store: { values: ['model', 'errors'], types: ['publish'] },
  config: { values: ['model', 'errors'], types: ['publish'] },
  ui: { values: ['model', 'errors'], types: ['publish'] },
  // It reads the spec for itself: shared code would share a misreading, and no test could see it.
  'registry-server': { values: ['model/digest', 'model/descriptor'] },
  cli: { values: ['*'], never: ['commands', 'action', 'index'] },
  index: { values: ['*'], never: ['commands', 'action'] },
  action: { values: ['*'], never: ['commands'] },
  commands: { values: ['cli', 'errors', 'publish', 'spec', 'store', 'ui', 'model', 'registry-server'] },
};

/** Where time, randomness, environment and stdio come from; everywhere else they are handed in. */
const SOURCES_OF_WORLD: ReadonlySet<string> = new Set(['cli/runtime.ts', 'action/main.ts']);

/**
 * Defaults of the embedded registry, which is a server of its own with a clock of its own: `now` is an option, and
 * delays are what it is asked to show. By file and by what it uses.
 */
const EXCEPTIONS: readonly string[] = [
  'registry-server/server.ts uses Date.now',
  'registry-server/state.ts uses setTimeout',
];

/** Entries that must start fast or be bundled small. */
const WITHOUT_OCLIF = ['cli/runtime.ts', 'action/main.ts', 'index.ts'];

const LINES_MAX = 300;

function refusedPackage(path: string, specifier: string): boolean {
  const room = path.split('/', 1)[0];
  if (room === 'model') return specifier !== 'node:crypto';
  if (room === 'publish' && /^(?:node:)?(?:fs|http|https|net|tls|child_process)(?:\/|$)/.test(specifier)) return true;
  if (specifier === 'undici') return room !== 'http';
  return specifier.startsWith('@oclif/') && room !== 'cli' && room !== 'commands';
}

function readModules(): readonly Module[] {
  const root = new URL('../src/', import.meta.url);
  return readdirSync(root, { recursive: true, encoding: 'utf8' })
    .map((path) => path.replaceAll('\\', '/'))
    .filter((path) => path.endsWith('.ts'))
    .sort()
    .map((path) => readModule(path, readFileSync(new URL(path, root), 'utf8')));
}

describe('the house', () => {
  const modules = readModules();

  it('is looked at as a whole', () => {
    expect(modules.map(({ path }) => path)).toEqual(expect.arrayContaining(['errors.ts', 'model/digest.ts']));
  });

  it('rooms import only what the table allows', () => {
    expect(importOffences(modules, RULES)).toEqual([]);
  });

  it('imports make no ring', () => {
    expect(cycles(modules)).toEqual([]);
  });

  it(`no file has more than ${LINES_MAX} lines`, () => {
    expect(lengthOffences(modules, LINES_MAX)).toEqual([]);
  });

  it('time, randomness and the process come from the runtime only', () => {
    const found = worldOffences(modules.filter(({ path }) => !SOURCES_OF_WORLD.has(path)));
    const plain = (offence: string): string => offence.replace(/^src\/([^:]*):\d+:/, '$1');
    expect(found.filter((offence) => !EXCEPTIONS.includes(plain(offence)))).toEqual([]);
    expect(EXCEPTIONS.filter((exception) => !found.some((offence) => plain(offence) === exception))).toEqual([]);
  });

  it('model and publish do no I/O, undici stays in http, oclif in cli and commands', () => {
    expect(packageOffences(modules, refusedPackage)).toEqual([]);
  });

  it.each(WITHOUT_OCLIF)('%s loads no oclif', (start) => {
    expect(wayTo(modules, start, '@oclif/core')).toBeUndefined();
  });
});

describe('the checks themselves', () => {
  const file = (path: string, ...lines: readonly string[]): Module => readModule(path, lines.join('\n'));
  const errors = file('errors.ts', 'export const a = 1;');
  const digest = file('model/digest.ts', "import { a } from '../errors.ts';", 'export const b = a;');
  const retry = file('http/retry.ts', "import { b } from '../model/digest.ts';", 'export const c = b;');
  const message = file('http/message.ts', 'export type M = 1;', 'export const m = 1;');
  const client = file('registry/client.ts', 'export type D = 1;', 'export const d = 1;');
  const house = [errors, digest, retry, message, client];
  const offences = (...more: readonly Module[]) => importOffences([...house, ...more], RULES);

  it('find every kind of import, with its line', () => {
    const module = file(
      'x.ts',
      "import type { A } from './a.ts';",
      "import { type B } from './b.ts';",
      "import './c.ts';",
      "export * from './d.ts';",
      "export type { E } from './e.ts';",
      "const f = () => import('./f.ts');",
      "type G = import('./g.ts').G;",
      "// import './not.ts'",
      'const h = "import \'./not.ts\'";',
      "import * as i from './i.ts';",
      "import type * as j from './j.ts';",
      'const k = (name: string) => import(name);',
    );
    expect(module.imports.map(({ specifier, line, kind }) => `${line} ${kind} ${specifier}`)).toEqual([
      '1 type ./a.ts',
      '2 value ./b.ts',
      '3 value ./c.ts',
      '4 value ./d.ts',
      '5 type ./e.ts',
      '6 dynamic ./f.ts',
      '7 type ./g.ts',
      '10 value ./i.ts',
      '11 type ./j.ts',
      '12 dynamic (computed)',
    ]);
  });

  it('let a good house stand', () => {
    const publish = file(
      'publish/plan.ts',
      "import { c } from '../http/retry.ts';",
      "import type { D } from '../registry/client.ts';",
      "import { readFile } from 'node:fs/promises';",
    );
    expect(offences(publish)).toEqual([]);
  });

  it.each<[string, Module, string]>([
    [
      'an import to the left',
      file('model/x.ts', '', "import { c } from '../http/retry.ts';"),
      'src/model/x.ts:2: model may not import http/retry.ts',
    ],
    [
      'a type to the left',
      file('model/x.ts', "import type { M } from '../http/message.ts';"),
      'src/model/x.ts:1: model may not import http/message.ts',
    ],
    [
      'a value where only types may be taken',
      file('publish/x.ts', "import { d } from '../registry/client.ts';"),
      'src/publish/x.ts:1: publish may not import registry/client.ts, only its types',
    ],
    [
      'another module of a room than the one that is allowed',
      file('publish/x.ts', "import { m } from '../http/message.ts';"),
      'src/publish/x.ts:1: publish may not import http/message.ts',
    ],
    [
      'a dynamic import',
      file('ui/x.ts', '', '', "export const x = () => import('../registry/client.ts');"),
      'src/ui/x.ts:3: ui may not import registry/client.ts',
    ],
    [
      'a re-export',
      file('registry-server/x.ts', "export { a } from '../errors.ts';"),
      'src/registry-server/x.ts:1: registry-server may not import errors.ts',
    ],
    [
      'a room that is not in the table',
      file('misc/x.ts', "import { a } from '../errors.ts';"),
      'src/misc/x.ts:1: a room that the import table does not name',
    ],
    [
      'a module that is not there',
      file('model/x.ts', "import { y } from './y.ts';"),
      'src/model/x.ts:1: imports ./y.ts, which is no module of src',
    ],
    [
      'a computed import',
      file('ui/x.ts', 'export const x = (y: string) => import(y);'),
      'src/ui/x.ts:1: imports a computed name',
    ],
  ])('catch %s', (_title, module, offence) => {
    expect(offences(module)).toEqual([offence]);
  });

  it('keep commands and the action out of the other rooms', () => {
    const command = file('commands/publish.ts', 'export const x = 1;');
    const action = file('action/main.ts', "import { x } from '../commands/publish.ts';", 'export const y = 1;');
    const cli = file(
      'cli/x.ts',
      "import { d } from '../registry/client.ts';",
      "import { y } from '../action/main.ts';",
    );
    expect(offences(command, action, cli)).toEqual([
      'src/action/main.ts:1: action may not import commands/publish.ts',
      'src/cli/x.ts:2: cli may not import action/main.ts',
    ]);
  });

  it('find a ring, but none made of types', () => {
    const ring = (clause: string): readonly Module[] => [
      file('ui/a.ts', "import { b } from './b.ts';"),
      file('ui/b.ts', "import { c } from './c.ts';"),
      file('ui/c.ts', `${clause} from './a.ts';`),
    ];
    expect(cycles(ring('import { a }'))).toEqual([
      'src/ui/a.ts:1: import cycle ui/a.ts -> ui/b.ts -> ui/c.ts -> ui/a.ts',
    ]);
    expect(cycles(ring('import type { a }'))).toEqual([]);
    expect(cycles([file('ui/a.ts', "import './a.ts';")])).toHaveLength(1);
  });

  it('count lines', () => {
    expect(lengthOffences([file('ui/a.ts', ...Array<string>(300).fill(''))], 300)).toEqual([]);
    expect(lengthOffences([readModule('ui/a.ts', '\n'.repeat(301))], 300)).toEqual([
      'src/ui/a.ts:301: 301 lines, at most 300',
    ]);
  });

  it('find the world where it was not handed in', () => {
    const module = file(
      'ui/x.ts',
      'const a = process.env;',
      'const b = [Date.now(), Math.random(), performance.now()];',
      'const c = new Date();',
      'setTimeout(() => a, 1);',
      "import { setTimeout as sleep } from 'node:timers/promises';",
      'const e = { process };',
      'const f = { clock: Date.now };',
      'const g = AbortSignal.timeout(1);',
      "import process2 from 'node:process';",
    );
    expect(worldOffences([module]).map((offence) => offence.replace('src/ui/x.ts:', ''))).toEqual([
      '5: imports node:timers/promises',
      '9: imports node:process',
      '1: uses process',
      '2: uses Date.now',
      '2: uses Math.random',
      '2: uses performance.now',
      '3: uses Date()',
      '4: uses setTimeout',
      '6: uses process',
      '7: uses Date.now',
      '8: uses AbortSignal.timeout',
    ]);
  });

  it('do not take names, comments and texts for the world', () => {
    const module = file(
      'ui/x.ts',
      '// process.exit, Date.now()',
      'const a = "process.env Math.random()";',
      'type P = { readonly process: number; setTimeout(): void };',
      'type T = ReturnType<typeof setTimeout>;',
      'const b = (x: P) => x.process;',
      'const c = new Date(0);',
      'const d = { process: 1 };',
      'const { process: e } = d;',
    );
    expect(worldOffences([module])).toEqual([]);
  });

  it('follow imports to a package, over types and dynamic ones not', () => {
    const way = [
      file(
        'cli/runtime.ts',
        "import './a.ts';",
        "import type { B } from './b.ts';",
        "const c = () => import('./b.ts');",
      ),
      file('cli/a.ts', "import { errors } from '../errors.ts';"),
      file('cli/b.ts', "import { Command } from '@oclif/core/command';"),
      errors,
    ];
    expect(wayTo(way, 'cli/runtime.ts', '@oclif/core')).toBeUndefined();
    const wrong = [...way.slice(2), file('cli/runtime.ts', "import './a.ts';"), file('cli/a.ts', "import './b.ts';")];
    expect(wayTo(wrong, 'cli/runtime.ts', '@oclif/core')).toEqual([
      'cli/runtime.ts',
      'cli/a.ts',
      'cli/b.ts',
      '@oclif/core/command',
    ]);
  });

  it('find packages in the wrong room', () => {
    const wrong = [
      file('model/x.ts', "import { readFileSync } from 'node:fs';"),
      file('publish/x.ts', "import type { Readable } from 'node:stream';", "import { connect } from 'node:net';"),
      file('registry/x.ts', "import { request } from 'undici';"),
      file('ui/x.ts', "import { Command } from '@oclif/core';"),
      file('http/x.ts', "import { Agent } from 'undici';"),
      file('cli/x.ts', "import { Command } from '@oclif/core';"),
    ];
    expect(packageOffences(wrong, refusedPackage)).toEqual([
      'src/model/x.ts:1: may not import node:fs',
      'src/publish/x.ts:2: may not import node:net',
      'src/registry/x.ts:1: may not import undici',
      'src/ui/x.ts:1: may not import @oclif/core',
    ]);
  });
});
