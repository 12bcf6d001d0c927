import { describe, expect, it } from 'vitest';
import { INPUTS, readInputs } from '../../src/action/inputs.ts';
import { actionWords, inInputWords } from '../../src/action/words.ts';
import { PublishError } from '../../src/errors.ts';

/** As the runner names it. */
const variables = (inputs: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(inputs).map(([name, value]) => [`INPUT_${name.toUpperCase()}`, value]));

const words = (inputs: Readonly<Record<string, string>>) => {
  const env = variables(inputs);
  return actionWords(readInputs(env), env);
};

const APP = 'ghcr.io/acme/app';
const SOURCES = { sources: `${APP}:amd64` };

describe('inputs', () => {
  it('that are not written are not there', () => {
    expect(readInputs({})).toEqual(readInputs(variables(Object.fromEntries(INPUTS.map((name) => [name, ' '])))));
    expect(readInputs({})).toMatchObject({ target: undefined, tags: [], dryRun: false, summary: true });
  });

  it('arrive with their hyphens', () => {
    expect(readInputs({ 'INPUT_DIGESTS-DIR': 'digests', 'INPUT_DRY-RUN': 'TRUE' })).toMatchObject({
      digestsDir: 'digests',
      dryRun: true,
    });
  });

  it.each(['yes', '1', 'tRUE'])('are true or false, not %j', (text) => {
    expect(() => readInputs(variables({ summary: text }))).toThrow('input summary must be true or false');
  });

  it('whose names are nearly right end the run: what they leave out may be a check', () => {
    const slip = variables({ 'expect-platform': 'linux/amd64' });
    expect(() => readInputs(slip)).toThrow('there is no input "expect-platform"');
    expect(() => readInputs({ INPUT_GREETING: 'hello' })).not.toThrow();
  });
});

describe('target and tags', () => {
  it.each<[string, Readonly<Record<string, string>>, string | undefined, readonly string[]]>([
    ['a target by itself', { target: `${APP}:1` }, `${APP}:1`, []],
    ['a target with tags beside its own', { target: `${APP}:1`, tags: '2,latest' }, `${APP}:1`, ['2', 'latest']],
    [
      'a target without a tag is the repository of the tags, and latest stays out',
      { target: APP, tags: '1.2\n1' },
      `${APP}:1.2`,
      [`${APP}:1`],
    ],
    [
      'the first tag in the repository of the target leads',
      { target: APP, tags: `docker.io/acme/app:1\n${APP}:1` },
      `${APP}:1`,
      ['docker.io/acme/app:1'],
    ],
    ['a layout needs no tag', { target: 'oci:./out' }, 'oci:./out', []],
    [
      'without a target the first whole reference is it',
      { tags: `edge\n${APP}:1\n${APP}:2` },
      `${APP}:1`,
      ['edge', `${APP}:2`],
    ],
    ['a registry with a port is no tag', { target: 'localhost:5000/a', tags: '1' }, 'localhost:5000/a:1', []],
    ['metadata may bring the target', { tags: 'edge', 'metadata-files': 'm.json' }, undefined, ['edge']],
  ])('%s', (_title, inputs, target, tags) => {
    expect(words({ ...SOURCES, ...inputs }).words).toMatchObject({ target, tags });
  });

  it('never make one of the tags a source that was meant', () => {
    expect(words({ ...SOURCES, target: `${APP}:1`, tags: 'docker.io/acme/app:1' }).words.certain).toBe(true);
  });
});

describe('a bad input is named', () => {
  it.each<[Readonly<Record<string, string>>, string]>([
    [{ target: 'acme/App:1', ...SOURCES }, 'input target: '],
    [{ target: `${APP}:1`, tags: 'not!a!tag', ...SOURCES }, 'input tags: '],
    [{ target: `${APP}:1`, platform: 'linux/', ...SOURCES }, 'input platform: '],
    [{ target: `${APP}:1`, 'expect-platforms': 'x/y/z/w', ...SOURCES }, 'input expect-platforms: '],
    [{ target: `${APP}:1`, annotations: 'no value', ...SOURCES }, 'input annotations must be KEY=VALUE'],
    [{ tags: '1,2', ...SOURCES }, 'input target is missing, and tags holds no whole reference'],
    [{ ...SOURCES }, 'input target is missing'],
    [{ target: APP, ...SOURCES }, `input target has no tag, and input tags is empty: ${APP}`],
    [{ target: APP, tags: ' ,\n# 1.2', ...SOURCES }, 'input target has no tag'],
    [{ target: 'localhost:5000/a', ...SOURCES }, 'input target has no tag'],
    [{ target: APP, 'metadata-files': 'env:M' }, 'input target has no tag'],
    [{ target: `${APP}:1`, 'expect-platforms': ',', ...SOURCES }, 'input expect-platforms names no platform'],
    [{ target: `${APP}:1`, platform: ' , # x', ...SOURCES }, 'input platform names no platform'],
    [{ target: APP, tags: 'docker.io/acme/app:1', ...SOURCES }, 'none of the input tags is in the repository'],
    [{ target: `${APP}:1` }, 'there is no source'],
    [{ spec: 'a.yaml', target: APP }, 'inputs spec and target cannot be used together'],
    [{ spec: 'a.yaml', 'digests-dir': 'd' }, 'inputs spec and digests-dir cannot be used together'],
  ])('%o', (inputs, message) => {
    expect(() => words(inputs)).toThrow(message);
  });

  it('in errors of the command line, but not in what a registry says', () => {
    const said = 'cannot read what --digests-dir names: write --digests-dir=x, --from-metadata or --no-clobber';
    const own = inInputWords(new PublishError('FILE_FAILED', said, 'Add --jobs 4.'));
    expect(own.message).toBe(
      'cannot read what input digests-dir names: write digests-dir: x, input metadata-files or --no-clobber',
    );
    expect(own.hint).toBe('Add input jobs 4.');
    const theirs = new PublishError('DENIED', 'it says --tag', '', { side: 'target' });
    expect(inInputWords(theirs)).toBe(theirs);
    const advised = new PublishError('DENIED', 'it says --tag', 'Correct --expect-platforms.', { side: 'source' });
    expect(inInputWords(advised)).toMatchObject({
      message: 'it says --tag',
      hint: 'Correct input expect-platforms.',
      side: 'source',
    });
    const type = new PublishError('INDEX_TYPE_CONFLICT', 'no annotations', 'Add --type oci to get an OCI index.');
    expect(inInputWords(type).hint).toBe('Write type: oci into the file of input config to get an OCI index.');
  });
});

describe('settings', () => {
  it('are those of the flags', () => {
    const { settings, flags } = words({
      spec: 'one.yaml, two.yaml',
      platform: 'linux/amd64, linux/arm64',
      'expect-platforms': 'linux/amd64\nlinux/arm64',
      annotations: 'a.b=1, 2\ndescriptor[linux/arm64]:c.d=3',
      'dry-run': 'true',
    });
    expect(flags.file).toEqual(['one.yaml', 'two.yaml']);
    expect(settings).toMatchObject({
      platforms: [{ architecture: 'amd64' }, { architecture: 'arm64' }],
      expectPlatforms: [{ architecture: 'amd64' }, { architecture: 'arm64' }],
      annotations: { 'a.b': '1, 2' },
      entryAnnotations: [{ platform: { architecture: 'arm64' }, annotations: { 'c.d': '3' } }],
      dryRun: true,
    });
  });
});
