import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { INPUTS, readInputs } from '../../src/action/inputs.ts';
import { GITHUB_OUTPUTS } from '../../src/cli/github-outputs.ts';
import { actionFile } from './runner.ts';

const page = readFileSync(new URL('../../docs/ci.md', import.meta.url), 'utf8');

describe('action.yml', () => {
  const file = actionFile();

  it('declares the inputs and outputs of the source, in their order', () => {
    expect(Object.keys(file.inputs)).toEqual([...INPUTS]);
    expect(Object.keys(file.outputs)).toEqual([...GITHUB_OUTPUTS]);
  });

  it('has for defaults what the source takes an empty input for', () => {
    const defaults = Object.entries(file.inputs).map(([name, field]) => [
      `INPUT_${name.toUpperCase()}`,
      field.default ?? '',
    ]);
    expect(readInputs(Object.fromEntries(defaults))).toEqual(readInputs({}));
    for (const field of Object.values(file.inputs)) expect(field.required).toBe(false);
  });

  it('runs the bundle on Node 24', () => {
    expect(file.runs).toEqual({ using: 'node24', main: 'dist/index.cjs' });
  });

  it('has what the marketplace asks for', () => {
    expect(file.name).toBe('manifest-publish');
    // Feather icons and colours that GitHub takes.
    expect(file.branding).toEqual({ icon: 'layers', color: 'blue' });
    for (const field of Object.values({ ...file.inputs, ...file.outputs })) {
      expect(field.description).toMatch(/^[A-Z].*\.$/);
    }
  });
});

describe('docs/ci.md', () => {
  const snippets = [...page.matchAll(/^```yaml\n([\s\S]*?)^```$/gm)].map(([, text = '']) => text);

  it('has YAML that can be parsed', () => {
    expect(snippets.length).toBeGreaterThan(4);
    for (const text of snippets) {
      for (const document of parseAllDocuments(text)) expect(document.errors, text).toEqual([]);
    }
  });

  it('uses the action with inputs and outputs that there are', () => {
    const uses: Readonly<Record<string, unknown>>[] = [];
    const walk = (value: unknown): void => {
      if (Array.isArray(value)) value.forEach(walk);
      else if (value !== null && typeof value === 'object') {
        const step = value as Readonly<Record<string, unknown>>;
        if (String(step['uses']).includes('/manifest-publish@')) uses.push(step);
        Object.values(step).forEach(walk);
      }
    };
    for (const text of snippets) walk(parse(text));
    expect(uses.length).toBeGreaterThan(1);
    for (const { with: inputs = {} } of uses) {
      for (const name of Object.keys(inputs as object)) expect(INPUTS).toContain(name);
    }
    for (const [, name = ''] of page.matchAll(/steps\.publish\.outputs\.([\w-]+)/g)) {
      expect(GITHUB_OUTPUTS).toContain(name);
    }
  });

  it('pins every action of others by its commit', () => {
    for (const [, name = '', version = ''] of page.matchAll(/uses: ([\w./-]+)@(\S+)/g)) {
      if (name.endsWith('/manifest-publish')) continue;
      expect(version, name).toMatch(/^[0-9a-f]{40}$/);
    }
  });

  it('has a row for every input and output', () => {
    for (const name of [...INPUTS, ...GITHUB_OUTPUTS]) expect(page).toMatch(new RegExp(`^\\| \`${name}\` \\|`, 'm'));
  });
});
