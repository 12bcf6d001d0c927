import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { COMMANDS } from '../src/commands/index.ts';
import { LOADERS } from '../src/commands/run.ts';

const text = (path: string) => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8');
const packageJson = JSON.parse(text('package.json'));

describe('package.json', () => {
  it('has no runtime dependencies: the program is bundled', () => {
    expect(packageJson.dependencies).toEqual({});
    expect(packageJson.optionalDependencies ?? packageJson.peerDependencies).toBeUndefined();
  });

  it('pins every package exactly', () => {
    for (const [name, version] of Object.entries(packageJson.devDependencies)) {
      expect(version, name).toMatch(/^\d+\.\d+\.\d+$/);
    }
  });

  it('relies on no script that npm runs by itself, since .npmrc forbids them', () => {
    expect(text('.npmrc')).toContain('ignore-scripts=true');
    const automatic = Object.keys(packageJson.scripts).filter((name) =>
      /^(?:pre|post)|^(?:install|prepare|dependencies)$/.test(name),
    );
    expect(automatic).toEqual([]);
  });

  it('names files that are there, and Node from 20.18.1', () => {
    for (const path of packageJson.files) {
      // With a bang: not that one.
      if (path !== 'lib') expect(existsSync(new URL(`../${path.replace('!', '')}`, import.meta.url)), path).toBe(true);
    }
    expect(packageJson.engines.node).toBe('>=20.18.1');
    expect(packageJson.license).toBe('Apache-2.0');
    expect(text('LICENSE')).toContain('Apache License');
  });
});

describe('package-lock.json', () => {
  it('names no download addresses', () => {
    expect(text('package-lock.json')).not.toContain('"resolved"');
  });
});

describe('the commands', () => {
  it('are the same for oclif, which writes the manifest, and for the program', async () => {
    expect(Object.keys(LOADERS)).toEqual(Object.keys(COMMANDS));
    for (const [id, load] of Object.entries(LOADERS))
      expect(await load(), id).toBe(COMMANDS[id as keyof typeof COMMANDS]);
  });
});

describe('oclif.manifest.json', () => {
  // `npm run check` compares every byte; this one is quick to say what is missing.
  const manifest = JSON.parse(text('oclif.manifest.json'));

  it('has the commands, arguments and flags of the classes', () => {
    expect(manifest.version).toBe(packageJson.version);
    expect(Object.keys(manifest.commands).sort()).toEqual(Object.keys(COMMANDS).sort());
    for (const [id, command] of Object.entries(COMMANDS)) {
      const flags = { ...command.baseFlags, ...command.flags };
      expect(Object.keys(manifest.commands[id].flags).sort(), id).toEqual(Object.keys(flags).sort());
      expect(Object.keys(manifest.commands[id].args), id).toEqual(Object.keys(command.args));
    }
  });

  it('explains every command and every flag', () => {
    for (const [id, command] of Object.entries<Record<string, unknown>>(manifest.commands)) {
      for (const part of ['summary', 'description', 'usage'] as const)
        expect(command[part], `${id} ${part}`).toBeTruthy();
      expect(command['examples'], id).not.toEqual([]);
      const flags = command['flags'] as Readonly<Record<string, { readonly description?: string }>>;
      for (const [name, flag] of Object.entries(flags)) {
        expect(flag.description, `${id} --${name}`).toMatch(/^[A-Z].*[.\]]$/);
      }
    }
  });
});

describe('THIRD_PARTY_NOTICES', () => {
  it('holds a licence for every package that the bundle is made of', () => {
    const sections = text('THIRD_PARTY_NOTICES')
      .split(/^-{80}$/m)
      .slice(1);
    expect(sections.length).toBeGreaterThan(20);
    for (const section of sections) {
      const [, title = '', , ...body] = section.split('\n');
      expect(title).toMatch(/^\S+ \d+\.\d+\.\d+ \((?:MIT|ISC|Apache-2\.0|BSD-\d-Clause)\)$/);
      expect(body.join('\n'), title).toMatch(/permission|license/i);
    }
    for (const name of ['@oclif/core', 'undici', 'listr2', 'cosmiconfig', 'valibot', 'yaml']) {
      expect(text('THIRD_PARTY_NOTICES')).toContain(`\n${name} ${packageJson.devDependencies[name]} (`);
    }
  });
});
