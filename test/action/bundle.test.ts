import { readdirSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));

describe('the bundle of the action', () => {
  const code = readFileSync(`${root}dist/index.cjs`, 'utf8');
  const modules = [...code.matchAll(/^\/\/#region (\S+)/gm)].map(([, name = '']) => name);

  it('is one file, and loads nothing but Node’s own modules', () => {
    expect(readdirSync(`${root}dist`)).toEqual(['index.cjs']);
    const loaded = [...code.matchAll(/\brequire\("([^"]+)"\)/g)].map(([, name = '']) => name.replace(/^node:/, ''));
    expect(loaded.length).toBeGreaterThan(10);
    expect(loaded.filter((name) => !builtinModules.includes(name))).toEqual([]);
  });

  it('holds neither commands, nor oclif, nor the embedded registry, nor anything that draws', () => {
    expect(modules.filter((name) => /^src\/(?:action|publish|http)\//.test(name)).length).toBeGreaterThan(50);
    const refused = /^src\/(?:commands|registry-server)\/|node_modules\/(?:@oclif|listr2|ora)\//;
    expect(modules.filter((name) => refused.test(name))).toEqual([]);
  });

  it('holds nothing of the machine that made it, and of package.json what the program uses', () => {
    expect(code).not.toContain(root);
    expect(code).not.toContain('devDependencies');
  });
});
