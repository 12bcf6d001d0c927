import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { RunningRegistry } from '../../src/registry-server/index.ts';
import { emptyFolder } from '../cli/program.ts';
import { makeImage, putBuilt, seedImage } from '../helpers/images.ts';
import { startRegistry, writes } from '../helpers/registry.ts';
import { canary } from '../helpers/watching.ts';
import { commandsIn, runStep } from './runner.ts';

let folder: string;
let registry: RunningRegistry;

beforeEach(async () => {
  folder = emptyFolder();
  registry = await startRegistry();
});

afterEach(() => registry.close());

const PLATFORMS = ['amd64', 'arm64', 's390x'] as const;
const APP = 'acme/app';
const full = (name: string) => `${registry.host}/${name}`;

/** What the matrix jobs pushed by digest, and the artifacts that they left: empty files, named by hex digits. */
function buildJobs(where = registry, platforms: readonly string[] = PLATFORMS): readonly string[] {
  mkdirSync(join(folder, 'digests'));
  return platforms.map((architecture) => {
    const image = makeImage(`app ${architecture}`, { platform: { os: 'linux', architecture } });
    putBuilt(where, APP, image);
    const { digest } = image.descriptor;
    writeFileSync(join(folder, 'digests', digest.replace('sha256:', '')), '');
    return digest;
  });
}

/** What docker/metadata-action puts into the environment of later steps. */
const metadata = (tags: readonly string[]) =>
  JSON.stringify({ tags: tags.map((tag) => full(`${APP}:${tag}`)), labels: { a: 'b' }, annotations: [] });

const blobRequests = () => registry.journal.filter(({ path }) => path.includes('/blobs/'));

describe('the merge job of build-then-merge', () => {
  const TAGS = ['1.2.3', '1.2', '1', 'latest'] as const;

  it('publishes four tags without asking for a blob, or sending one', async () => {
    const digests = buildJobs();
    const step = await runStep(
      folder,
      {
        'digests-dir': 'digests',
        'metadata-files': 'env:DOCKER_METADATA_OUTPUT_JSON',
        'expect-platforms': 'linux/amd64, linux/arm64\nlinux/s390x',
      },
      { DOCKER_METADATA_OUTPUT_JSON: metadata(TAGS) },
    );
    expect(step.exitCode, step.stderr).toBe(0);
    expect(registry.tags(APP)).toEqual([...TAGS].sort());
    const digest = registry.tagOf(APP, 'latest') ?? '';
    for (const tag of TAGS) expect(registry.tagOf(APP, tag)).toBe(digest);

    expect(blobRequests().filter(({ method }) => method !== 'GET')).toEqual([]);
    expect(writes(registry).map(({ method, operation }) => `${method} ${operation}`)).toEqual(
      TAGS.map(() => 'PUT manifestPut'),
    );

    const { json, ...outputs } = step.outputs;
    const bytes = registry.manifestOf(APP, 'latest')?.bytes ?? Buffer.of();
    expect(outputs).toEqual({
      digest,
      ref: `${full(APP)}@${digest}`,
      tags: TAGS.map((tag) => full(`${APP}:${tag}`)).join('\n'),
      digests: PLATFORMS.map((name) => `linux/${name}`)
        .map((name) => `${name}=${digests[PLATFORMS.findIndex((one) => name.endsWith(one))]}`)
        .sort((one, other) => order(one) - order(other))
        .join('\n'),
      metadata: expect.any(String),
    });
    expect(JSON.parse(outputs['metadata'] ?? '')).toEqual({
      'containerimage.descriptor': {
        mediaType: 'application/vnd.oci.image.index.v1+json',
        digest,
        size: bytes.length,
      },
      'containerimage.digest': digest,
      'image.name': TAGS.map((tag) => full(`${APP}:${tag}`)).join(','),
    });
    expect(JSON.parse(json ?? '')).toMatchObject({ schemaVersion: 1, lists: [{ index: { digest } }] });

    expect(step.summary).toContain(`### \`${full(`${APP}:1.2.3`)}\``);
    expect(step.summary).toContain(`~~~text\n${full(APP)}@${digest}\n~~~`);
    for (const [at, name] of PLATFORMS.entries())
      expect(step.summary).toContain(`| \`linux/${name}\` | \`${digests[at]}\` |`);
    expect({ stdout: step.stdout, commands: commandsIn(step.stderr) }).toEqual({ stdout: '', commands: [] });

    function order(line: string): number {
      // Files of a folder are taken in the order of their names.
      return [...digests].sort().indexOf(line.split('=')[1] ?? '');
    }
  });

  it('takes the tags of docker/metadata-action as an input just as well', async () => {
    buildJobs();
    const tags = TAGS.map((tag) => full(`${APP}:${tag}`)).join('\n');
    const step = await runStep(folder, { 'digests-dir': 'digests', tags });
    expect(step.exitCode, step.stderr).toBe(0);
    expect(step.outputs['tags']).toBe(tags);
    expect(registry.tags(APP)).toEqual([...TAGS].sort());
  });

  it('replaces a single image under one of the tags, as nobody can have meant that as a source', async () => {
    buildJobs();
    seedImage(registry, APP, 'latest');
    const step = await runStep(folder, { 'digests-dir': 'digests', tags: `${full(APP)}:latest,${full(APP)}:1` });
    expect(step.exitCode, step.stderr).toBe(0);
    expect(registry.tagOf(APP, 'latest')).toBe(step.outputs['digest']);
  });

  it('fails before any write when a platform is missing, and says which', async () => {
    buildJobs(registry, ['amd64', 'arm64']);
    registry.clearJournal();
    const step = await runStep(folder, {
      target: full(`${APP}:1`),
      'digests-dir': 'digests',
      'expect-platforms': 'linux/amd64,linux/arm64,linux/s390x',
    });
    expect(step.exitCode).toBe(4);
    expect(writes(registry)).toEqual([]);
    expect(step.stderr).toContain('::error title=manifest-publish%3A PLATFORM_NOT_FOUND (exit 4)::');
    expect(step.stderr).toContain('linux/s390x');
    expect(step.stderr).toContain('Push what is missing, or correct input expect-platforms.');
    expect(step.stderr).not.toContain('--expect-platforms');
    expect(step.outputs).toMatchObject({ digest: '', ref: '', tags: '', metadata: '' });
    expect(JSON.parse(step.outputs['json'] ?? '')).toMatchObject({
      error: { code: 'PLATFORM_NOT_FOUND', exitCode: 4 },
    });
    expect(step.summary).toMatch(/^### Not published\n\n~~~text\nerror: .*linux\/s390x/);
  });
});

describe('the action', () => {
  const TWO = () => `${full('t/amd64:1')}\nlinux/arm64=${full('t/arm64:1')}`;

  beforeEach(() => {
    for (const architecture of ['amd64', 'arm64'] as const) {
      seedImage(registry, `t/${architecture}`, '1', { platform: { os: 'linux', architecture } });
    }
    registry.clearJournal();
  });

  it('joins images of other repositories, with annotations, under the tags of a repository', async () => {
    const step = await runStep(folder, {
      target: full(APP),
      tags: '1, edge # no latest',
      sources: TWO(),
      annotations: 'org.opencontainers.image.title=A, "b" # c\ndescriptor[linux/arm64]:a.b=c',
    });
    expect(step.exitCode, step.stderr).toBe(0);
    expect(registry.tags(APP)).toEqual(['1', 'edge']);
    const index = JSON.parse(Buffer.from(registry.manifestOf(APP, '1')?.bytes ?? []).toString());
    expect(index.annotations).toEqual({ 'org.opencontainers.image.title': 'A, "b" # c' });
    expect(index.manifests[1].annotations).toEqual({ 'a.b': 'c' });
  });

  it('takes images of one platform only', async () => {
    const step = await runStep(folder, { target: full(`${APP}:1`), sources: TWO(), platform: 'linux/amd64' });
    expect(step.exitCode, step.stderr).toBe(0);
    expect(step.outputs['digests']).toMatch(/^linux\/amd64=sha256:[0-9a-f]{64}$/);
  });

  it('writes nothing in a dry run, and names the digest that the index would have', async () => {
    const inputs = { target: full(`${APP}:1`), sources: TWO() };
    const dry = await runStep(folder, { ...inputs, 'dry-run': 'true' });
    expect(dry.exitCode, dry.stderr).toBe(0);
    expect(writes(registry)).toEqual([]);
    expect(dry.outputs).toMatchObject({ ref: '', tags: '', metadata: '' });
    expect(dry.summary).toContain('(dry run)');
    const other = emptyFolder();
    const wet = await runStep(other, inputs);
    expect(wet.outputs['digest']).toBe(dry.outputs['digest']);
  });

  it('publishes the lists of spec files', async () => {
    const lists = ['a', 'b'].map((name) => `  - target: ${full(`t/${name}:1`)}\n    sources: [${full('t/amd64:1')}]\n`);
    writeFileSync(join(folder, 'lists.yaml'), `lists:\n${lists.join('')}`);
    const step = await runStep(folder, { spec: 'lists.yaml' });
    expect(step.exitCode, step.stderr).toBe(0);
    expect(step.outputs['tags']).toBe(`${full('t/a:1')}\n${full('t/b:1')}`);
    expect(step.outputs['digest']?.split('\n')).toHaveLength(2);
    expect(step.summary).toContain('### 2 lists');
  });

  it('takes images from metadata files of docker buildx', async () => {
    const images = ['amd64', 'arm64'].map((name) => {
      const digest = registry.tagOf(`t/${name}`, '1');
      const file = { 'containerimage.digest': digest, 'image.name': full(`t/${name}`) };
      writeFileSync(join(folder, `${name}.json`), JSON.stringify(file));
      return digest;
    });
    const step = await runStep(folder, { target: full(`${APP}:1`), 'metadata-files': 'amd64.json\narm64.json' });
    expect(step.exitCode, step.stderr).toBe(0);
    expect(step.outputs['digests']).toBe(`linux/amd64=${images[0]}\nlinux/arm64=${images[1]}`);
  });

  it('needs no summary', async () => {
    const step = await runStep(folder, { target: full(`${APP}:1`), sources: TWO(), summary: 'false' });
    expect(step).toMatchObject({ exitCode: 0, summary: '' });
    expect(step.outputs['digest']).toBe(registry.tagOf(APP, '1'));
  });

  it.each<[string, Readonly<Record<string, string>>, number]>([
    ['jobs', { jobs: '0' }, 2],
    ['dry-run', { 'dry-run': 'perhaps' }, 2],
    ['platform', { platform: 'linux/' }, 2],
    ['config', { config: 'none.yaml' }, 2],
    ['digests-dir', { 'digests-dir': 'none' }, 8],
    ['metadata-files', { 'metadata-files': 'none.json' }, 8],
    ['tags', { tags: 'a b' }, 2],
  ])('names the input %s when that is bad, and asks nothing of a registry', async (name, inputs, exitCode) => {
    const step = await runStep(folder, { target: full(`${APP}:1`), sources: TWO(), ...inputs });
    expect(step.exitCode, step.stderr).toBe(exitCode);
    expect(step.stderr).toMatch(new RegExp(`^error: .*${name}`, 'm'));
    expect(step.stderr).not.toContain('--');
    expect(commandsIn(step.stderr)).toEqual(['error']);
    expect(registry.journal).toEqual([]);
  });

  it('lets no registry command the runner', async () => {
    const evil = '##[error]x\n::set-output name=digest::evil\r\n::add-mask::a %0A::error::b';
    registry.configure({ warning: evil.replaceAll(/[\r\n]+/g, ' ') });
    const body = JSON.stringify({ errors: [{ code: 'DENIED', message: evil, detail: evil }] });
    registry.addFault({ operation: 'manifestPut', action: { kind: 'answer', status: 403, body } });
    const step = await runStep(folder, { target: full(`${APP}:1`), sources: TWO() }, { RUNNER_DEBUG: '1' });
    expect(step.exitCode).toBe(3);
    expect(commandsIn(`${step.stdout}\n${step.stderr}`)).toEqual(['group', 'endgroup', 'error']);
    expect(step.masks).toEqual([]);
    expect(step.outputs['digest']).toBe('');
  });

  it('folds requests and plan in debug mode', async () => {
    const step = await runStep(folder, { target: full(`${APP}:1`), sources: TWO() }, { RUNNER_DEBUG: '1' });
    expect(commandsIn(step.stderr)).toEqual(['group', 'endgroup', 'group', 'endgroup']);
    expect(step.stderr).toMatch(/^::group::Requests\n(?:.*\n)*?GET .*\n(?:.*\n)*?::endgroup::\n::group::Plan of /);
  });

  it('adds to what is in the files already', async () => {
    writeFileSync(join(folder, 'set_output'), 'earlier=1\n');
    writeFileSync(join(folder, 'step_summary'), '# Earlier\n');
    const step = await runStep(folder, { target: full(`${APP}:1`), sources: TWO() });
    expect(step.outputs).toMatchObject({ earlier: '1', digest: registry.tagOf(APP, '1') });
    expect(step.summary).toMatch(/^# Earlier\n### /);
  });

  it('tells of inputs that are wrong in outputs and summary, and moves no latest that nobody named', async () => {
    const inputs = { target: full(APP), tags: '', sources: TWO() };
    const step = await runStep(folder, inputs);
    expect(step.exitCode).toBe(2);
    expect(JSON.parse(step.outputs['json'] ?? '')).toMatchObject({ error: { code: 'USAGE_INVALID', exitCode: 2 } });
    expect(step.outputs).toMatchObject({ digest: '', ref: '', tags: '', digests: '', metadata: '' });
    expect(step.summary).toContain('error: input target has no tag, and input tags is empty');
    expect(commandsIn(step.stderr)).toEqual(['error']);
    expect(registry.journal).toEqual([]);
    const quiet = emptyFolder();
    expect((await runStep(quiet, { ...inputs, summary: 'false' })).summary).toBe('');
  });

  it('ends before anything is asked when outputs cannot be written', async () => {
    const step = await runStep(
      folder,
      { target: full(`${APP}:1`), sources: TWO() },
      { GITHUB_OUTPUT: join(folder, 'no', 'such', 'file') },
    );
    expect(step.exitCode).toBe(8);
    expect(step.stderr).toContain('cannot write to the file of GITHUB_OUTPUT (ENOENT)');
    expect(registry.journal).toEqual([]);
  });
});

describe('secrets', () => {
  it('that are read from a credential file, and tokens, are told to the runner and shown nowhere else', async () => {
    const password = canary();
    const auth = { scheme: 'bearer', anonymousPull: false } as const;
    const start = (name: string) => startRegistry({ changes: { auth }, users: [{ name, password }] });
    const target = await start('robot');
    // One password under two names: the second is told whole though the first has made the password known.
    const source = await start('reader');
    try {
      seedImage(source, 't/amd64', '1', { platform: { os: 'linux', architecture: 'amd64' } });
      const logins = [
        [target.host, `robot:${password}`],
        [source.host, `reader:${password}`],
      ].map(([host = '', login = '']) => [host, Buffer.from(login).toString('base64')] as const);
      const auths = Object.fromEntries(logins.map(([host, text]) => [host, { auth: text }]));
      const inputs = { target: `${target.host}/${APP}:1`, sources: `${source.host}/t/amd64:1` };
      const env = { DOCKER_AUTH_CONFIG: JSON.stringify({ auths }), RUNNER_DEBUG: '1' };
      const step = await runStep(folder, inputs, env);
      expect(step.exitCode, step.stderr).toBe(0);
      const known = [password, ...logins.map(([, text]) => text)];
      expect(step.masks).toEqual(expect.arrayContaining(known));
      const tokens = [...target.journal, ...source.journal].filter(({ operation }) => operation === 'token');
      expect(tokens.length).toBeGreaterThan(1);
      expect(step.masks.length).toBeGreaterThan(known.length + 1);
      for (const mask of step.masks) {
        expect(mask).not.toContain('***');
        expect(`${step.stderr}${step.stdout}${step.summary}${JSON.stringify(step.outputs)}`).not.toContain(mask);
      }
    } finally {
      await target.close();
      await source.close();
    }
  });
});
