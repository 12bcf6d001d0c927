import { expect, test } from 'vitest';
import { easelOn } from '../../src/ui/easel.ts';
import { play } from './screen.ts';

function terminal(columns: number, rows: number) {
  const written: string[] = [];
  return { columns, rows, written, write: (text: string) => written.push(text.replaceAll('\n', '\r\n')) };
}

test('draws over what it drew and leaves what stood there before', () => {
  const stream = terminal(80, 24);
  const easel = easelOn(stream);
  stream.write('before\n');
  easel.draw(['one', 'two', 'three']);
  easel.draw(['\u001b[31muno\u001b[39m']);
  expect(play(stream.written.join('')).lines).toEqual(['before', 'uno']);
  easel.draw([]);
  expect(play(stream.written.join('')).lines).toEqual(['before']);
});

test('writes nothing when there is nothing to take back', () => {
  const stream = terminal(80, 24);
  easelOn(stream).draw([]);
  expect(stream.written).toEqual([]);
});

test('takes back the rows that lines fill since the terminal became narrower', () => {
  const stream = terminal(100, 24);
  const easel = easelOn(stream);
  easel.draw([`\u001b[31m${'x'.repeat(90)}\u001b[39m`, 'y', '']);
  stream.columns = 40;
  easel.draw([]);
  expect(stream.written.at(-1)).toBe(`\r\u001b[5A${'\u001b[K\r\n'.repeat(5)}\u001b[K\u001b[5A`);
});

test('draws no more than the terminal has rows', () => {
  const stream = terminal(80, 3);
  const easel = easelOn(stream);
  easel.draw(['1', '2', '3', '4']);
  expect(stream.written.at(-1)).toBe('\r\u001b[K1\r\n\u001b[K2\r\n\u001b[K');
});

test('takes away what the terminal shows of a Ctrl-C that is typed', () => {
  const stream = terminal(80, 24);
  const easel = easelOn(stream);
  easel.draw(['one', 'two']);
  stream.write('^C');
  easel.draw(['uno']);
  expect(play(stream.written.join('')).lines).toEqual(['uno']);
  stream.write('^C');
  easel.draw([]);
  stream.write('error: interrupted\n');
  expect(play(stream.written.join('')).lines).toEqual(['error: interrupted']);
});

test('never clears all of the screen, which tmux would keep in its history', () => {
  const stream = terminal(80, 24);
  const easel = easelOn(stream);
  easel.draw(['1', '2']);
  easel.draw(['1']);
  easel.draw([]);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences are what is looked for
  expect(stream.written.join('')).not.toMatch(/\u001b\[\d*J/);
  expect(play(stream.written.join('')).lines).toEqual([]);
});
