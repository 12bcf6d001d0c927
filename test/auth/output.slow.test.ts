import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { cli, emptyFolder } from '../cli/program.ts';
import { seedImage } from '../helpers/images.ts';
import { withRegistry } from '../helpers/registry.ts';
import { closeAll, type RunningServer, type Seen, serve } from '../http/fixture.ts';

afterEach(closeAll);

const USER = 'robot$ci';
const TOKEN = `eyJhbGciOiJub25lIn0.${Buffer.from('a token of our own '.repeat(40)).toString('base64url')}.sig-9`;

/** Every form of a login that a careless registry could repeat. */
function formsOf(password: string): readonly string[] {
  const login = Buffer.from(`${USER}:${password}`).toString('base64');
  return [password, encodeURIComponent(password), JSON.stringify(password).slice(1, -1), login];
}

/**
 * A registry with a token server that repeats everything it was sent wherever there is room for it: in messages,
 * details and codes, in warnings, in addresses, in a page. `refuse` is asked what to do with whoever has a token.
 */
async function gossip(password: string, refuse: 'token' | 'json' | 'html' | 'redirect'): Promise<RunningServer> {
  const server = await serve((_request, response, seen: Seen) => {
    const told = `${seen.headers.authorization ?? ''} ${formsOf(password).join(' ')} ${'x'.repeat(100)} ${TOKEN}`;
    const warning = `299 - "${told.replaceAll(/["\\]/g, '')}"`;
    const body = JSON.stringify({ errors: [{ code: 'DENIED', message: told, detail: { Authorization: told } }] });
    const path = new URL(seen.url, 'http://x').pathname;
    if (path === '/token') {
      if (refuse === 'token') response.writeHead(403, { warning: Buffer.from(warning).toString('latin1') }).end(body);
      else response.end(JSON.stringify({ token: TOKEN, expires_in: 300 }));
    } else if (seen.headers.authorization === undefined && !path.startsWith('/gossip')) {
      const challenge = `Bearer realm="http://${server.host}/token",service="r"`;
      response.writeHead(401, { 'www-authenticate': challenge }).end(body);
    } else if (refuse === 'redirect' && !path.startsWith('/gossip')) {
      const location = `/gossip/${encodeURIComponent(password)}/${TOKEN}/${path}`;
      response.writeHead(307, { location, warning: Buffer.from(warning).toString('latin1') }).end();
    } else if (refuse === 'html') {
      const page = `<html><title>${told.replaceAll('&', '&amp;').replaceAll('<', '&lt;')}</title></html>`;
      response.writeHead(403, { 'content-type': 'text/html' }).end(page);
    } else {
      response.writeHead(403, { warning: Buffer.from(warning).toString('latin1') }).end(body);
    }
  });
  return server;
}

function folderWith(host: string, password: string): string {
  const folder = emptyFolder();
  mkdirSync(join(folder, '.docker'));
  const auths = { [host]: { auth: Buffer.from(`${USER}:${password}`).toString('base64') } };
  writeFileSync(join(folder, '.docker', 'config.json'), JSON.stringify({ auths }));
  return folder;
}

describe.each(['Tr0ub4dor&3 "x"', 'hunter2'])('the password %s', (password) => {
  it.each(['token', 'json', 'html', 'redirect'] as const)(
    'is in no output, though the registry repeats it in its %s answers',
    async (refuse) => {
      const { host } = await gossip(password, refuse);
      const folder = folderWith(host, password);
      const report = join(folder, 'report.json');
      const publish = ['publish', `${host}/t/all:1`, `${host}/s/x:1`, '--retries', '0', '--report', report];
      for (const flags of [['--debug'], ['--json', '--debug'], ['--progress', 'json', '--debug']]) {
        const { exitCode, stdout, stderr } = await cli(folder, [...publish, ...flags]);
        expect(exitCode).toBe(3);
        const output = `${stdout}\n${stderr}`;
        expect(output).toContain('***');
        for (const form of formsOf(password)) expect(output).not.toContain(form);
        if (refuse !== 'token') expect(output).not.toContain(TOKEN.slice(0, 60));
      }
    },
  );

  it('is in no report of a publish that went well', async () => {
    const folder = emptyFolder();
    const warning = `299 - "you are ${USER} with ${password.replaceAll('"', '')} and ${TOKEN}"`;
    const options = {
      profile: { auth: { scheme: 'basic' as const }, mount: { mode: 'ignore' as const }, warning },
      users: [{ name: USER, password }],
    };
    await withRegistry({ options }, async (registry) => {
      seedImage(registry, 's/x', '1', { platform: { os: 'linux', architecture: 'amd64' } });
      const home = folderWith(registry.host, password);
      const report = join(folder, 'report.json');
      const sources = [`${registry.host}/t/all:1`, `${registry.host}/s/x:1`];
      const { exitCode, stdout, stderr } = await cli(home, ['publish', ...sources, '--json', '--report', report]);
      expect(exitCode).toBe(0);
      const output = `${stdout}\n${stderr}\n${readFileSync(report, 'utf8')}`;
      expect(output).toMatch(/sha256:[0-9a-f]{64}/);
      for (const form of formsOf(password)) expect(output).not.toContain(form);
    });
  });
});
