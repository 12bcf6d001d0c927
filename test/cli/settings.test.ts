import { describe, expect, it } from 'vitest';
import { type NetworkFlags, networkSettings, progressMode } from '../../src/cli/settings.ts';

const FLAGS: NetworkFlags = { insecure: false, 'plain-http': false };
const HOST = 'ghcr.io';

describe('precedence', () => {
  const env = {
    MANIFEST_PUBLISH_JOBS: '6',
    MANIFEST_PUBLISH_TIMEOUT: '6s',
    MANIFEST_PUBLISH_RETRIES: '6',
    MANIFEST_PUBLISH_CA_FILE: 'env.pem',
  };
  const config = { jobs: 7, timeout: 7000, retries: 7, caFile: 'config.pem' };

  it('is flag, environment, configuration, default', () => {
    const flags = { ...FLAGS, jobs: '5', timeout: '5s', retries: '5', 'ca-file': 'flag.pem' };
    expect(networkSettings(flags, env, config, HOST)).toEqual({
      hosts: {},
      jobs: 5,
      timeout: 5000,
      retries: 5,
      caFile: 'flag.pem',
    });
    expect(networkSettings(FLAGS, env, config, HOST)).toEqual({
      hosts: {},
      jobs: 6,
      timeout: 6000,
      retries: 6,
      caFile: 'env.pem',
    });
    expect(networkSettings(FLAGS, {}, config, HOST)).toEqual({
      hosts: {},
      jobs: 7,
      timeout: 7000,
      retries: 7,
      caFile: 'config.pem',
    });
    expect(networkSettings(FLAGS, {}, {}, HOST)).toEqual({ hosts: {}, jobs: 4, retries: 5 });
  });

  it('takes an empty variable for none, and 0s for no limit', () => {
    expect(networkSettings({ ...FLAGS, timeout: '0s' }, { MANIFEST_PUBLISH_JOBS: '' }, {}, HOST)).toEqual({
      hosts: {},
      jobs: 4,
      retries: 5,
    });
  });

  it('of progress is the same', () => {
    const common = { json: false, quiet: false, debug: false, 'no-color': false };
    const variable = { MANIFEST_PUBLISH_PROGRESS: 'json' };
    expect(progressMode({ ...common, progress: 'tty' }, variable, { progress: 'plain' })).toBe('tty');
    expect(progressMode(common, variable, { progress: 'plain' })).toBe('json');
    expect(progressMode(common, {}, { progress: 'plain' })).toBe('plain');
    expect(progressMode(common, {}, {})).toBe('auto');
  });
});

describe('registries', () => {
  it('--insecure and --plain-http are meant for the registry named first', () => {
    const config = { registries: { 'docker.io': { maxRps: 2 }, 'ghcr.io': { maxRps: 3, caFile: '/ca.pem' } } };
    expect(networkSettings({ ...FLAGS, insecure: true, 'plain-http': true }, {}, config, HOST).hosts).toEqual({
      'docker.io': { maxRps: 2 },
      'ghcr.io': { maxRps: 3, caFile: '/ca.pem', insecure: true, plainHttp: true },
    });
  });

  it('no variable weakens a check', () => {
    const env = { MANIFEST_PUBLISH_INSECURE: '1', MANIFEST_PUBLISH_PLAIN_HTTP: '1', MANIFEST_PUBLISH_NO_VERIFY: '1' };
    expect(networkSettings(FLAGS, env, {}, HOST)).toEqual({ hosts: {}, jobs: 4, retries: 5 });
  });

  it('--max-rps takes a host by any of its names, and a variable takes a list', () => {
    const flags = { ...FLAGS, 'max-rps': ['index.docker.io=0.5', 'localhost:5000=10'] };
    expect(networkSettings(flags, {}, {}, HOST).hosts).toEqual({
      'docker.io': { maxRps: 0.5 },
      'localhost:5000': { maxRps: 10 },
    });
    const env = { MANIFEST_PUBLISH_MAX_RPS: 'docker.io=1, ghcr.io=2' };
    expect(networkSettings(FLAGS, env, {}, HOST).hosts).toEqual({
      'docker.io': { maxRps: 1 },
      'ghcr.io': { maxRps: 2 },
    });
  });
});
