import { looksRandom, type Secrets } from '../auth/secrets.ts';
import { renderMask } from '../ui/render.ts';

/**
 * Tells the runner of every login and token before anything else hears of it. A password that is a word is left out: the
 * runner would blot the word out everywhere, and drop outputs that hold it; our own output does not show it either way.
 *
 * @param command writes to the runner, without taking out secrets
 */
export function maskingSecrets(own: Secrets, command: (text: string) => void): Secrets {
  const told = new Set<string>();
  const mask = (secret: string) => {
    if (told.has(secret) || !looksRandom(secret)) return;
    told.add(secret);
    command(renderMask(secret));
  };
  return {
    addLogin(credential) {
      if (credential.kind === 'basic') {
        const password = credential.password.reveal();
        mask(password);
        // As it travels, and as it stands in credential files.
        if (looksRandom(password)) mask(Buffer.from(`${credential.username}:${password}`).toString('base64'));
      }
      if (credential.kind === 'identity-token') mask(credential.token.reveal());
      own.addLogin(credential);
    },
    add(secret) {
      mask(secret);
      own.add(secret);
    },
    conceal: own.conceal,
  };
}
