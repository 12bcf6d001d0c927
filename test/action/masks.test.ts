import { describe, expect, it } from 'vitest';
import { maskingSecrets } from '../../src/action/masks.ts';
import { createSecrets } from '../../src/auth/secrets.ts';
import { Secret } from '../../src/http/credential.ts';

function watched() {
  const commands: string[] = [];
  return { commands, secrets: maskingSecrets(createSecrets(), (text) => commands.push(text)) };
}

const basic = (password: string) => ({ kind: 'basic', username: 'robot', password: new Secret(password) }) as const;

describe('masks', () => {
  it('are made of passwords, of what travels in their place, of identity tokens and of tokens, each once', () => {
    const { commands, secrets } = watched();
    for (const _ of [1, 2]) {
      secrets.addLogin(basic('p4ss%word'));
      secrets.addLogin({ kind: 'identity-token', token: new Secret('identity-1234') });
      secrets.addLogin({ kind: 'none' });
      secrets.add('token-abcdef-123');
    }
    expect(commands).toEqual([
      '::add-mask::p4ss%25word\n',
      `::add-mask::${Buffer.from('robot:p4ss%word').toString('base64')}\n`,
      '::add-mask::identity-1234\n',
      '::add-mask::token-abcdef-123\n',
    ]);
  });

  it('are not made of words, which stand everywhere', () => {
    const { commands, secrets } = watched();
    for (const word of ['secret', 'amd64', '', '1234']) secrets.addLogin(basic(word));
    expect(commands).toEqual([]);
  });

  it('leave our own output without any of them', () => {
    const { secrets } = watched();
    secrets.addLogin(basic('secret'));
    secrets.add('token-abcdef-123');
    expect(secrets.conceal('it says: secret token-abcdef-123')).toBe('it says: *** ***');
  });
});
