import { describe, expect, it } from 'vitest';
import { dockerFolder, draftFolder } from '../../src/store/folder.ts';

describe('where drafts are', () => {
  it.each([
    [
      'our variable decides over all',
      { MANIFEST_PUBLISH_DATA_DIR: '/d', DOCKER_CONFIG: '/c', XDG_DATA_HOME: '/x' },
      '/d/drafts',
    ],
    [
      "beside docker's configuration when its place was chosen",
      { DOCKER_CONFIG: '/c', XDG_DATA_HOME: '/x' },
      '/c/manifest-publish/drafts',
    ],
    ['below the XDG data directory', { XDG_DATA_HOME: '/x' }, '/x/manifest-publish/drafts'],
    ['in the home', {}, '/home/me/.local/share/manifest-publish/drafts'],
    [
      'empty variables count as unset',
      { MANIFEST_PUBLISH_DATA_DIR: '', DOCKER_CONFIG: '', XDG_DATA_HOME: '' },
      '/home/me/.local/share/manifest-publish/drafts',
    ],
    ['a relative XDG directory is ignored', { XDG_DATA_HOME: 'data' }, '/home/me/.local/share/manifest-publish/drafts'],
  ])('%s', (_rule, env, folder) => {
    expect(draftFolder(env, '/home/me')).toBe(folder);
  });

  it('docker has its own', () => {
    expect(dockerFolder({ DOCKER_CONFIG: '/c' }, '/home/me')).toBe('/c');
    expect(dockerFolder({ DOCKER_CONFIG: '' }, '/home/me')).toBe('/home/me/.docker');
  });
});
