import { describe, expect, it } from 'vitest';
import { input, outline, read, readOne } from './reading.ts';

describe('files as people write them', () => {
  it('one repository with a tag for each platform, two Windows images told apart by their configs', () => {
    const request = readOne(input('tool-own.yaml').replaceAll('VERS', '2.3.0'), { name: 'push.yaml' });
    expect(outline(request)).toEqual({
      targets: ['reg.example.test/tools/lister:2.3.0', 'reg.example.test/tools/lister:latest'],
      sources: [
        'linux/386=reg.example.test/tools/lister:linux_386_2.3.0',
        'linux/amd64=reg.example.test/tools/lister:linux_amd64_2.3.0',
        'linux/arm64/v8=reg.example.test/tools/lister:linux_arm64_2.3.0',
        'linux/arm/v7=reg.example.test/tools/lister:linux_arm_v7_2.3.0',
        'linux/arm/v6=reg.example.test/tools/lister:linux_arm_v6_2.3.0',
        'linux/ppc64le=reg.example.test/tools/lister:linux_ppc64le_2.3.0',
        'linux/s390x=reg.example.test/tools/lister:linux_s390x_2.3.0',
        'linux/riscv64=reg.example.test/tools/lister:linux_riscv64_2.3.0',
        'windows/amd64=reg.example.test/tools/lister:windows_new_2.3.0',
        'windows/amd64=reg.example.test/tools/lister:windows_old_2.3.0',
      ],
    });
    expect(request.origin).toBe('push.yaml:2:1');
    expect(request.sources[0]?.origin).toBe('push.yaml:6:12');
    expect(request.sources[9]?.origin).toBe('push.yaml:54:12');
  });

  it('four repositories, annotations with numbers and dates as they are written', () => {
    expect(readOne(input('four-repositories.yaml'))).toEqual({
      targets: [{ host: 'reg.example.test', repository: 'base/tiny', tag: '3.10' }],
      sources: [
        { line: 10, architecture: 'amd64' },
        { line: 14, architecture: 'arm64' },
        { line: 18, architecture: 'ppc64le' },
        { line: 22, architecture: 's390x' },
      ].map(({ line, architecture }) => ({
        reference: { host: 'reg.example.test', repository: `base/${architecture}_tiny`, tag: '3.10' },
        platform: { architecture, os: 'linux' },
        origin: `app.yaml:${line}:12`,
      })),
      type: 'auto',
      annotations: {
        'org.opencontainers.image.title': 'tiny',
        'org.opencontainers.image.version': '3.10',
        'org.opencontainers.image.created': '2026-11-30T00:00:00Z',
        'org.opencontainers.image.licenses': 'MIT',
        'org.opencontainers.image.url': 'https://tiny.example.test/?a=b',
      },
      layout: 'plain',
      platforms: [],
      forcePlatform: false,
      foreignLayers: false,
      waitForSource: 0,
      dryRun: false,
      verify: true,
      origin: 'app.yaml:2:1',
    });
  });

  it('one image under two platforms, in the order of the file', () => {
    const variables = { FULLVERSION: '9.4.2', VERSION: '9' };
    expect(outline(readOne(input('image-twice.yaml'), { variables }))).toEqual({
      targets: ['9.4.2', '9', 'latest'].map((tag) => `docker.io/acme/grabber:${tag}`),
      sources: [
        'linux/amd64=docker.io/acme/grabber:9.4.2-amd64',
        'linux/386=docker.io/acme/grabber:9.4.2-i386',
        'linux/arm/v6=docker.io/acme/grabber:9.4.2-armv6',
        'linux/arm/v7=docker.io/acme/grabber:9.4.2-armv7',
        'linux/arm64=docker.io/acme/grabber:9.4.2-arm64',
        'linux/arm/v8=docker.io/acme/grabber:9.4.2-arm64',
      ],
    });
  });

  it('two lists of the same images', () => {
    const sources = ['docker.io/acme/lang:0.12.1-amd64', 'docker.io/acme/lang:0.12.1-arm64'];
    const requests = read(input('version-and-latest.yaml'));
    expect(requests.map(outline)).toEqual([
      { targets: ['docker.io/acme/lang:0.12.1'], sources },
      { targets: ['docker.io/acme/lang:latest'], sources },
    ]);
    expect(requests.map(({ origin }) => origin)).toEqual(['app.yaml:3:5', 'app.yaml:7:5']);
  });

  it('a branch in single quotes; one with a slash is told with its place', () => {
    const text = input('branch.yaml');
    expect(outline(readOne(text, { variables: { BRANCH: 'master' } }))).toEqual({
      targets: ['docker.io/acme/deck:master'],
      sources: [
        'linux/amd64=docker.io/acme/deck:linux-amd64-master',
        'linux/arm/v7=docker.io/acme/deck:linux-arm32v7-master',
      ],
    });
    expect(() => readOne(text, { variables: { BRANCH: 'fix/login' } })).toThrow(
      /^app\.yaml:2:8: "acme\/deck:fix\/login": not a repository name: |^app\.yaml:2:8: .*not a tag: "fix\/login"/,
    );
  });
});
