import { describe, expect, it } from 'vitest';
import { renderDrafts } from '../../src/ui/render.ts';

const theme = { color: false, unicode: true, width: Number.POSITIVE_INFINITY };
const drafts = [
  { reference: 'docker.io/acme/app:1', entries: 2, platforms: ['linux/amd64', 'linux/arm/v7'] },
  { reference: 'ghcr.io/acme/app:latest', entries: 10, platforms: [] },
];

describe('drafts', () => {
  it('are a table', () => {
    expect(renderDrafts(drafts, theme).split('\n')).toEqual([
      'LIST                     ENTRIES  PLATFORMS',
      'docker.io/acme/app:1           2  linux/amd64, linux/arm/v7',
      'ghcr.io/acme/app:latest       10',
      '',
    ]);
  });

  it('without any are nothing, not a head', () => {
    expect(renderDrafts([], theme)).toBe('');
  });

  it('fit a narrow terminal', () => {
    for (const line of renderDrafts(drafts, { ...theme, width: 40 }).split('\n')) {
      expect(line.length).toBeLessThanOrEqual(40);
    }
  });

  it('cannot write what a terminal obeys', () => {
    const [platform] = ['linux/\u001b[31mamd64'];
    const text = renderDrafts([{ reference: 'a', entries: 1, platforms: [platform ?? ''] }], theme);
    expect(text).not.toContain('\u001b');
  });
});
