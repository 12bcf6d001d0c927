import { readdirSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { PublishError } from '../errors.ts';
import type { HostSettings } from '../http/endpoint.ts';
import { readCertificateFolders } from './certificate-folders.ts';
import { hasCertificates, mayHoldCertificates } from './certificates.ts';
import type { Environment } from './environment.ts';
import type { NetworkSettings } from './settings.ts';

/** Certificates to trust besides the built-in ones, in PEM: for all hosts, and by host. */
export type Authorities = {
  readonly ca: readonly string[];
  readonly hosts: Readonly<Record<string, HostSettings>>;
};

/**
 * Reads the files of `--ca-file`, of the configuration, of `SSL_CERT_FILE` and `SSL_CERT_DIR`, which are Go's names and
 * what users of docker, crane and skopeo have set, and of `certs.d`.
 *
 * @param folders see {@link certificateFolders}
 * @throws PublishError `FILE_FAILED` when a file cannot be read, `CONFIG_INVALID` when it holds no certificate
 */
export async function readAuthorities(
  network: NetworkSettings,
  env: Environment,
  folders: readonly string[] = [],
): Promise<Authorities> {
  const extra = env['NODE_EXTRA_CA_CERTS'];
  const common = [
    ...(network.caFile === undefined ? [] : [await readCertificates(network.caFile, '--ca-file')]),
    // Node trusts what NODE_EXTRA_CA_CERTS names already, and reading 150 certificates again costs 40 ms of CPU.
    ...(env['SSL_CERT_FILE'] === extra ? [] : fromEnvironment(env['SSL_CERT_FILE'])),
    ...fromFolders(env['SSL_CERT_DIR']),
  ];
  const hosts: Record<string, HostSettings> = Object.fromEntries(await readCertificateFolders(folders));
  for (const [host, { insecure, plainHttp, caFile }] of Object.entries(network.hosts)) {
    const laid = hosts[host];
    const named = caFile === undefined ? [] : [await readCertificates(caFile, `caFile of ${host}`)];
    const ca = [...named, ...(laid?.ca ?? [])];
    hosts[host] = {
      ...laid,
      ...(insecure === undefined ? {} : { insecure }),
      ...(plainHttp === undefined ? {} : { plainHttp }),
      ...(ca.length === 0 ? {} : { ca }),
    };
  }
  const named = common.length > 0 || Object.values(hosts).some((host) => host.ca !== undefined);
  // Node itself adds this file to its own list, but not to a list that is given.
  const ca = named ? [...common, ...fromEnvironment(extra)] : [];
  return { ca, hosts };
}

/** As Go and Node do, a variable that names no readable certificate is passed over. */
function fromEnvironment(path: string | undefined): readonly string[] {
  if (path === undefined || path === '') return [];
  const text = orElse('', () => readFileSync(path, 'utf8'));
  return mayHoldCertificates(text) ? [text] : [];
}

/**
 * Every file of the folders in a list as `PATH` is; the same text only once, as such folders name each file twice. One
 * after the other at once: three hundred small files, each waited for, cost 30 ms of CPU.
 */
function fromFolders(list: string | undefined): readonly string[] {
  const texts = new Set<string>();
  for (const folder of (list ?? '').split(delimiter).filter((one) => one !== '')) {
    for (const name of orElse([], () => readdirSync(folder))) {
      for (const text of fromEnvironment(join(folder, name))) texts.add(text);
    }
  }
  return [...texts];
}

/** What cannot be read counts as empty. */
function orElse<T>(empty: T, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof Error && 'code' in error) return empty;
    throw error;
  }
}

async function readCertificates(path: string, name: string): Promise<string> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    const hint = `Check the name and the rights of the file: ${path}`;
    throw new PublishError('FILE_FAILED', `cannot read the file of ${name}: ${path} (${reason})`, hint, {
      cause: error,
    });
  }
  if (hasCertificates(text)) return text;
  throw new PublishError(
    'CONFIG_INVALID',
    `the file of ${name} holds no usable certificate: ${path}`,
    'Name a PEM file with -----BEGIN CERTIFICATE----- in it.',
  );
}
