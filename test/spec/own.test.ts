// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of spec files are what is read here
import { describe, expect, it } from 'vitest';
import { digestOf } from '../../src/model/digest.ts';
import { parsePlatform } from '../../src/model/platform.ts';
import { parseReference } from '../../src/model/reference.ts';
import { expandTemplate, readSpec, readSpecs, type SpecBase } from '../../src/spec/index.ts';
import { failureOf, outline, read, readOne, shown } from './reading.ts';

const DIGEST = digestOf(Buffer.from('x'));

describe('our own format', () => {
  it('says everything that a list can say', () => {
    const text = `
targets: [ghcr.io/acme/app:1.2.3, "docker.io/acme/app:1.2.3"]
tags: [1.2, latest]
sources:
  - ghcr.io/acme/app-amd64:1.2.3
  - armhf=ghcr.io/acme/app-armhf:1.2.3
  - image: ghcr.io/acme/app-win:1.2.3
    platform: {os: windows, architecture: amd64, os.version: 10.0.17763.2300, os.features: [win32k]}
    annotations: {a: b}
  - image: ${DIGEST}
    platform: linux/arm64
template: {image: ghcr.io/acme/app-ARCH:1.2.3, platforms: [linux/s390x, linux/ppc64le]}
type: oci
annotations: {org.opencontainers.image.version: 1.20}
entryAnnotations:
  all: {c: d}
  linux/arm/v7: {e: f}
platforms: [linux/amd64, armhf]
expectPlatforms: [linux/amd64]
expectDigest: ${DIGEST}
attestations: drop
referrers: all
amend: true
ignoreMissing: true
forcePlatform: true
noClobber: true
`;
    const [arm, amd64] = [parsePlatform('linux/arm/v7'), parsePlatform('linux/amd64')];
    const request = readOne(text);
    expect({ ...request, ...outline(request) }).toEqual({
      targets: [
        'ghcr.io/acme/app:1.2.3',
        'docker.io/acme/app:1.2.3',
        'ghcr.io/acme/app:1.2',
        'docker.io/acme/app:1.2',
        'ghcr.io/acme/app:latest',
        'docker.io/acme/app:latest',
      ],
      sources: [
        'ghcr.io/acme/app-amd64:1.2.3',
        'linux/arm/v7=ghcr.io/acme/app-armhf:1.2.3',
        'windows/amd64:10.0.17763.2300=ghcr.io/acme/app-win:1.2.3',
        `linux/arm64=ghcr.io/acme/app@${DIGEST}`,
        'linux/s390x=ghcr.io/acme/app-s390x:1.2.3',
        'linux/ppc64le=ghcr.io/acme/app-ppc64le:1.2.3',
      ],
      type: 'oci',
      annotations: { 'org.opencontainers.image.version': '1.20' },
      entryAnnotations: [{ annotations: { c: 'd' } }, { platform: arm, annotations: { e: 'f' } }],
      layout: 'plain',
      platforms: [amd64, arm],
      expectPlatforms: [amd64],
      expectDigest: DIGEST,
      attestations: 'drop',
      referrers: 'all',
      amend: true,
      ignoreMissing: true,
      forcePlatform: true,
      noClobber: true,
      foreignLayers: false,
      waitForSource: 0,
      dryRun: false,
      verify: true,
      origin: 'app.yaml:2:1',
    });
    expect(request.sources[2]).toMatchObject({
      platform: { 'os.features': ['win32k'] },
      annotations: { a: 'b' },
      origin: 'app.yaml:7:12',
    });
    expect(request.sources[4]?.origin).toBe('app.yaml:12:19');
  });

  it('fills in what defaults say, and joins annotations', () => {
    const requests = read(`
defaults:
  type: oci
  tags: [latest]
  annotations: {a: default, b: default}
  entryAnnotations: {all: {x: default}}
  amend: true
lists:
  - {target: "a:1", sources: [c], annotations: {b: list}, entryAnnotations: {linux/amd64: {x: list}}}
  - {target: "b:1", sources: [c], type: docker, tags: [], amend: false}
`);
    expect(requests.map(({ targets }) => targets.map(({ tag }) => tag))).toEqual([['1', 'latest'], ['1']]);
    expect(requests.map(({ type, amend }) => [type, amend])).toEqual([
      ['oci', true],
      ['docker', undefined],
    ]);
    expect(requests[0]?.annotations).toEqual({ a: 'default', b: 'list' });
    expect(requests[0]?.entryAnnotations).toEqual([
      { annotations: { x: 'default' } },
      { platform: { os: 'linux', architecture: 'amd64' }, annotations: { x: 'list' } },
    ]);
  });

  it('lets flags count over the file, and the configuration under it', () => {
    const base: SpecBase = {
      flags: {
        attestations: 'drop',
        annotations: { a: 'flag' },
        platforms: [parsePlatform('linux/amd64')],
        tags: ['next', 'ghcr.io/acme/mirror:1'],
        dryRun: true,
        verify: false,
      },
      config: { type: 'docker', foreignLayers: true, waitForSource: 5000 },
    };
    const text = 'target: a:1\nsources: [b]\ntype: oci\nattestations: keep\nannotations: {a: file, b: file}\n';
    expect(readOne(text, { base })).toMatchObject({
      targets: [{ tag: '1' }, { tag: 'next' }, { host: 'ghcr.io', repository: 'acme/mirror', tag: '1' }],
      type: 'oci',
      attestations: 'drop',
      annotations: { a: 'flag', b: 'file' },
      platforms: [{ architecture: 'amd64' }],
      dryRun: true,
      verify: false,
      foreignLayers: true,
      waitForSource: 5000,
    });
    expect(readOne('target: a:1\nsources: [b]\n', { base }).type).toBe('docker');
    expect(readOne('image: a:1\nmanifests: [{image: b}]\n', { base })).toMatchObject({ type: 'docker', dryRun: true });
  });

  it('takes several documents, in any of the formats, and passes over empty ones', () => {
    const text =
      '---\ntarget: a:1\nsources: [b]\n---\nimage: c:1\nmanifests: [{image: d}]\n---\n...\n---\nlists: [{target: "e:1", sources: [f]}]\n---\n';
    expect(read(text).map(({ targets, origin }) => [targets[0]?.repository, origin])).toEqual([
      ['library/a', 'app.yaml:2:1'],
      ['library/c', 'app.yaml:5:1'],
      ['library/e', 'app.yaml:10:9'],
    ]);
  });

  it('reads JSON with the same places', () => {
    const text =
      '\ufeff{\n\t"target": "a:1",\n\t"sources": ["b", {"image": "c", "platform": {"os": "linux", "architecture": 386}}],\n\t"amend": true\n}\n';
    for (const name of ['app.json', 'app.yaml']) {
      const request = readOne(text, { name });
      expect(request.sources.map(shown)).toEqual([
        'docker.io/library/b:latest',
        'linux/386=docker.io/library/c:latest',
      ]);
      expect(request).toMatchObject({ amend: true, origin: `${name}:1:1` });
      expect(request.sources[1]?.origin).toBe(`${name}:3:29`);
    }
  });

  it('names both places of a target that two files share', () => {
    const files = ['one', 'two'].map((name) => ({ name: `${name}.yaml`, text: 'target: a:1\nsources: [b]\n' }));
    expect(failureOf(() => readSpecs(files, { flags: {} })).message).toBe(
      'two.yaml:1:9: docker.io/library/a:1 is the target of two lists, the other at one.yaml:1:9',
    );
    const [one, two] = files;
    if (one === undefined || two === undefined) throw new Error('two files');
    expect(readSpec(one, { flags: {} })).toHaveLength(1);
    expect(
      failureOf(() => readSpecs([one, { ...two, text: 'target: c:1\nsources: [b]\n' }], { flags: { tags: ['d:1'] } }))
        .message,
    ).toBe('--tag: docker.io/library/d:1 is the target of two lists, the other at --tag');
  });

  it('takes layouts as targets and sources', () => {
    const { targets, sources } = readOne('target: oci:out/dir\nsources: ["linux/amd64=oci:in:1", "oci:a=b:2"]\n');
    expect(targets[0]?.host).toBe('oci:out/dir');
    expect(sources.map(({ reference, platform }) => [reference.host, platform?.architecture])).toEqual([
      ['oci:in', 'amd64'],
      ['oci:a=b', undefined],
    ]);
  });
});

describe('YAML', () => {
  it('leaves scalars as they are written', () => {
    const text = `
target: a:3.10
tags: [1e3, 010, 0x10, 2026-11-30, on, 1_000, "1.0", 'x']
sources: [b]
annotations:
  octal: 0o17
  date: 2026-11-30
  truth: True
  empty: ""
  folded: >-
    one
    two
  big: 12345678901234567890
`;
    const { targets, annotations } = readOne(text);
    expect(targets.map(({ tag }) => tag)).toEqual([
      '3.10',
      '1e3',
      '010',
      '0x10',
      '2026-11-30',
      'on',
      '1_000',
      '1.0',
      'x',
    ]);
    expect(annotations).toEqual({
      octal: '0o17',
      date: '2026-11-30',
      truth: 'True',
      empty: '',
      folded: 'one two',
      big: '12345678901234567890',
    });
  });

  it('follows anchors and merge keys, where what a map says itself counts', () => {
    const text = `
lists:
  - &first {target: "a:1", sources: [b], type: oci, annotations: &notes {x: 1, y: 1}}
  - {<<: *first, target: "a:2", annotations: {<<: *notes, y: 2}}
  - {target: "a:3", <<: [{type: docker}, *first]}
`;
    expect(read(text).map(({ targets, type, annotations }) => [targets[0]?.tag, type, annotations])).toEqual([
      ['1', 'oci', { x: '1', y: '1' }],
      ['2', 'oci', { x: '1', y: '2' }],
      ['3', 'docker', { x: '1', y: '1' }],
    ]);
  });

  it('ends aliases that stand for too much', () => {
    const levels = Array.from({ length: 8 }, (_, level) =>
      level === 0
        ? 'a0: &a0 [x]'
        : `a${level}: &a${level} [${Array(10)
            .fill(`*a${level - 1}`)
            .join(', ')}]`,
    );
    const start = performance.now();
    expect(failureOf(() => read(levels.join('\n'))).message).toContain(
      'too much in one file, with what aliases stand for',
    );
    expect(performance.now() - start).toBeLessThan(5000);
  });

  it("takes keys without value in manifest-tool's files for absent, as it does", () => {
    const text =
      'image: a:1\ntags:\nannotations:\nmanifests:\n- image: b\n  platform:\n- image: c\n  platform: {os: linux, architecture: arm, variant: }\n- image: d\n  platform: {}\n';
    expect(outline(readOne(text)).sources).toEqual([
      'docker.io/library/b:latest',
      'linux/arm=docker.io/library/c:latest',
      'docker.io/library/d:latest',
    ]);
  });

  it.each(['os.version', 'osversion'])('takes %s', (key) => {
    const text = `image: a:1\nmanifests:\n- image: b\n  platform: {os: windows, architecture: amd64, ${key}: 10.0.20348.1, osfeatures: [win32k]}\n`;
    expect(readOne(text).sources[0]?.platform).toEqual({
      architecture: 'amd64',
      os: 'windows',
      'os.version': '10.0.20348.1',
      'os.features': ['win32k'],
    });
  });

  it('shows the name of a file without what a terminal obeys', () => {
    expect(failureOf(() => read('', { name: 'a\u001b[2J.yaml' })).message).toBe(
      '"a\\u001b[2J.yaml":1:1: the file is empty',
    );
  });
});

describe('variables', () => {
  const variables = { TAG: '1.0', EMPTY: '', HOSTILE: 'x\nsources: [evil]' };

  it('stand in values, not in keys, and change no line', () => {
    const request = readOne(
      'target: a:${TAG}\nsources: ["b:${TAG}-x"]\nannotations: {"${TAG}": "${TAG}${EMPTY}", h: "${HOSTILE}"}\n',
      { variables },
    );
    expect(outline(request)).toEqual({ targets: ['docker.io/library/a:1.0'], sources: ['docker.io/library/b:1.0-x'] });
    expect(request.annotations).toEqual({ '${TAG}': '1.0', h: 'x\nsources: [evil]' });
  });

  it('are not looked for in what they hold, and can be written as they are', () => {
    const request = readOne('target: a:1\nsources: [b]\nannotations: {a: "$${TAG}", b: "$TAG $$ $", c: "${SELF}"}\n', {
      variables: { SELF: '${TAG}' },
    });
    expect(request.annotations).toEqual({ a: '${TAG}', b: '$TAG $$ $', c: '${TAG}' });
  });

  it.each(['toString', '__proto__', 'constructor'])('do not find %s, which every object has', (name) => {
    expect(failureOf(() => readOne(`target: "a:\${${name}}"\nsources: [b]\n`)).message).toContain(
      `the variable ${name} has no value`,
    );
  });
});

describe('a template', () => {
  const platforms = ['linux/amd64', 'linux/arm/v7', 'windows/amd64'].map(parsePlatform);

  it('replaces every placeholder wherever it stands', () => {
    expect(expandTemplate('ghcr.io/acme/OS-ARCH/app:OS_ARCHVARIANT-ARCH', platforms).map(shown)).toEqual([
      'linux/amd64=ghcr.io/acme/linux-amd64/app:linux_amd64-amd64',
      'linux/arm/v7=ghcr.io/acme/linux-arm/app:linux_armv7-arm',
      'windows/amd64=ghcr.io/acme/windows-amd64/app:windows_amd64-amd64',
    ]);
  });

  it('leaves longer words alone', () => {
    expect(expandTemplate('acme/app-ARCH:ARCHIVE-OSX-SEARCH-ARCH2', platforms.slice(0, 1)).map(shown)).toEqual([
      'linux/amd64=docker.io/acme/app-amd64:ARCHIVE-OSX-SEARCH-amd642',
    ]);
  });

  it('fails as the command line does when it comes from there', () => {
    expect(failureOf(() => expandTemplate('acme/app', platforms))).toMatchObject({ code: 'USAGE_INVALID' });
    expect(failureOf(() => expandTemplate('acme/app//ARCH', platforms))).toMatchObject({ code: 'REFERENCE_INVALID' });
    expect(parseReference('a').tag).toBe('latest');
  });
});

describe('many lists', () => {
  const ARCHITECTURES = ['amd64', 'arm64', 'arm/v7', 'arm/v6', '386', 'ppc64le', 's390x', 'riscv64'];
  const listText = (index: number) => {
    const sources = ARCHITECTURES.map(
      (name) =>
        `      - image: ghcr.io/acme/app${index}-${name.replace('/', '')}:1.2.3\n        platform: linux/${name}\n`,
    );
    return `  - targets: [ghcr.io/acme/app${index}:1.2.3, docker.io/acme/app${index}:1.2.3]\n    tags: [latest]\n    sources:\n${sources.join('')}`;
  };
  const fileOf = (count: number) => `lists:\n${Array.from({ length: count }, (_, index) => listText(index)).join('')}`;

  it('reads 300 lists of eight sources within a second of work, and 1,000 in proportion', () => {
    read(fileOf(20));
    const seconds = [300, 1000].map((count) => {
      const text = fileOf(count);
      const start = process.cpuUsage();
      const requests = read(text);
      const { user } = process.cpuUsage(start);
      expect(requests).toHaveLength(count);
      expect(requests[count - 1]?.sources).toHaveLength(8);
      expect(requests[count - 1]?.targets).toHaveLength(4);
      return user / 1e6;
    });
    expect(seconds[0]).toBeLessThan(2);
    expect(seconds[1]).toBeLessThan(6);
  });

  it('reads one map of 20,000 keys, whose number a careless reader would square', () => {
    const annotations = Array.from({ length: 20_000 }, (_, index) => `  k${index}: v\n`).join('');
    const start = process.cpuUsage();
    const request = readOne(`target: a:1\nsources: [b]\nannotations:\n${annotations}`);
    expect(Object.keys(request.annotations)).toHaveLength(20_000);
    expect(process.cpuUsage(start).user / 1e6).toBeLessThan(5);
  });

  it('refuses what is longer than 4 MiB', () => {
    const error = failureOf(() => read(`# ${'x'.repeat(4 * 1024 * 1024)}`));
    expect(error).toMatchObject({
      message: 'app.yaml:1:1: longer than 4 MiB',
      hint: 'Spread the lists over several files.',
    });
  });
});
