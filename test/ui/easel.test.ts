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
  expect(stream.written.at(-1)).toBe('\u001b[5A\u001b[J');
});

test('draws no more than the terminal has rows', () => {
  const stream = terminal(80, 3);
  const easel = easelOn(stream);
  easel.draw(['1', '2', '3', '4']);
  expect(stream.written.at(-1)).toBe('1\r\n2\r\n');
});
