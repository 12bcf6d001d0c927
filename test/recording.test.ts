import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { animate } from '../scripts/recording.ts';

const FOLDER = fileURLToPath(new URL('../docs/recordings', import.meta.url));

describe('a recording', () => {
  it('shows each frame in its time, the last one longest, and where nothing moves the last one', () => {
    const picture = animate(
      [
        { at: 0, lines: ['$'] },
        { at: 2, lines: ['$ a', 'b'] },
      ],
      10,
      'two frames',
    );
    expect(picture).toContain('<title>two frames</title>');
    const [, first, last] = picture.split('<g visibility=');
    expect(first).toContain(
      '"hidden"><animate attributeName="visibility" values="hidden;visible;hidden" keyTimes="0;0.0000;0.2500" dur="8.0s"',
    );
    expect(last).toContain(
      '"visible"><animate attributeName="visibility" values="hidden;visible" keyTimes="0;0.2500" dur="8.0s"',
    );
    expect(last).toMatch(/>\$ a<.*\n.*>b</);
  });

  it('takes colours and what XML would misread', () => {
    const picture = animate(
      [{ at: 0, lines: ['\u001b[31merror:\u001b[39m a <b> & "c" \u001b[1m\u001b[32mgood\u001b[0m \u001b[2mquiet'] }],
      40,
      'x',
    );
    expect(picture).toContain(' fill="#ff7b72">error:<');
    expect(picture).toContain('> a &lt;b&gt; &amp; "c" <');
    expect(picture).toContain(' font-weight="bold" fill="#7ee787">good<');
    expect(picture).toContain(' opacity="0.7">quiet<');
  });

  it.each(readdirSync(FOLDER))('docs/recordings/%s names nothing of the machine that made it', (name) => {
    const text = readFileSync(`${FOLDER}/${name}`, 'utf8');
    expect(text.startsWith('<svg ')).toBe(true);
    expect(text).not.toMatch(/\/(?:home|Users|root|tmp|work)\b|<script|href/);
  });
});
