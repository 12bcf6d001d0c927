import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PublishError } from '../../src/errors.ts';
import { groupStart, renderAnnotations, renderMask, renderOutputs } from '../../src/ui/render.ts';
import { commandsIn, readOutputs } from './runner.ts';

/** Texts that try to end a value, a line or a command. */
const hostile = fc
  .array(
    fc.constantFrom(
      '::error::',
      '::set-output name=a::b',
      '##[command]',
      '\n',
      '\r',
      '%0A',
      '::',
      ' ',
      'ends-1',
      'x',
      ',',
      '%',
    ),
  )
  .map((parts) => parts.join(''));

function failure(message: string, hint = 'Do it again.', report?: object): PublishError {
  return new PublishError('REGISTRY_FAILED', message, hint, report === undefined ? {} : { report });
}

describe('outputs', () => {
  it('come back as they were, whatever they hold', () => {
    fc.assert(
      fc.property(hostile, hostile, (one, two) => {
        let count = 0;
        const text = renderOutputs({ one, two }, () => String(++count));
        expect(readOutputs(text)).toEqual({ one, two });
      }),
    );
  });

  it('never stand in a delimiter of their own', () => {
    const tokens = ['1', '1', '2'];
    expect(renderOutputs({ a: 'x\nends-1\nb=c' }, () => tokens.shift() ?? '')).toBe(
      'a<<ends-2\nx\nends-1\nb=c\nends-2\n',
    );
  });
});

describe('an error annotation', () => {
  it('is one line, with the code as its title', () => {
    expect(renderAnnotations(failure('it broke: 100%, twice'))).toBe(
      '::error title=manifest-publish%3A REGISTRY_FAILED (exit 5)::it broke: 100%25, twice%0Ahint: Do it again.\n',
    );
  });

  it('holds no command and ends no line, whatever a registry says', () => {
    fc.assert(
      fc.property(hostile, hostile, (message, hint) => {
        const text = renderAnnotations(failure(message, hint));
        expect(text.split(/[\r\n]/)).toHaveLength(2);
        expect(commandsIn(text)).toEqual(['error']);
      }),
    );
  });

  it('of a bug says so', () => {
    expect(renderAnnotations(new TypeError('x is y'))).toContain('BUG (exit 1)::this is a bug of manifest-publish');
  });

  it('is there for each of several targets that failed, as many as are shown', () => {
    const target = (name: string, code: string) => ({
      reference: `r.test/a,b:${name}`,
      action: 'failed',
      error: { code, message: 'no\nway' },
    });
    const names = Array.from({ length: 12 }, (_, at) => `t${at}`);
    const report = { lists: [{ targets: [target('n', 'NOT_RUN'), ...names.map((name) => target(name, 'DENIED'))] }] };
    const lines = renderAnnotations(failure('many', '', report))
      .trimEnd()
      .split('\n');
    expect(lines).toHaveLength(10);
    expect(lines[1]).toBe('::error title=manifest-publish%3A DENIED r.test/a%2Cb%3At0::no way');
    const one = { lists: [{ targets: [target('t', 'DENIED')] }] };
    expect(
      renderAnnotations(failure('one', '', one))
        .trimEnd()
        .split('\n'),
    ).toHaveLength(1);
  });
});

describe('masks and groups', () => {
  it('stay on one line', () => {
    expect(renderMask('a%\nb')).toBe('::add-mask::a%25%0Ab\n');
    expect(groupStart('a\n::error::b')).toBe('::group::a |::error::b\n');
  });
});
