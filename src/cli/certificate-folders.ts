import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PublishError } from '../errors.ts';
import type { HostSettings } from '../http/endpoint.ts';
import { hasCertificates } from './certificates.ts';

/** What `certs.d` holds for a host. */
export type HostCertificates = Pick<HostSettings, 'ca' | 'clientCertificate' | 'problem'>;

/**
 * Where docker, podman and the rest look for certificates by host; the user's own first.
 *
 * @see https://docs.docker.com/engine/security/certificates/
 * @see containers-certs.d(5)
 */
export function certificateFolders(home: () => string): readonly string[] {
  return [
    ...own(home, '.docker/certs.d', '.config/containers/certs.d'),
    '/etc/containers/certs.d',
    '/etc/docker/certs.d',
  ];
}

/** None for a user without a home, as in some containers. */
function own(home: () => string, ...folders: readonly string[]): readonly string[] {
  try {
    const base = home();
    return folders.map((folder) => join(base, folder));
  } catch (error) {
    if (error instanceof Error) return [];
    throw error;
  }
}

/**
 * Reads `FOLDER/HOST[:PORT]/`: `*.crt` are authorities to trust, `NAME.cert` with `NAME.key` is what we show of
 * ourselves. What is wrong there is the host's problem, told when the host is spoken to; a folder for all hosts that is
 * not there, or not ours to look into, holds nothing for us.
 */
export async function readCertificateFolders(
  folders: readonly string[],
): Promise<ReadonlyMap<string, HostCertificates>> {
  const found = new Map<string, HostCertificates>();
  for (const folder of folders) {
    for (const name of await namesIn(folder).catch(() => [])) {
      const host = name.toLowerCase();
      const before = found.get(host);
      const here = await readHost(join(folder, name));
      const ca = [...(before?.ca ?? []), ...(here.ca ?? [])];
      found.set(host, { ...here, ...before, ...(ca.length === 0 ? {} : { ca }) });
    }
  }
  return found;
}

async function readHost(folder: string): Promise<HostCertificates> {
  try {
    const names = await namesIn(folder);
    const ca: string[] = [];
    for (const name of names.filter((one) => one.endsWith('.crt'))) ca.push(await readAuthority(join(folder, name)));
    const clientCertificate = await readPair(folder, names);
    return {
      ...(ca.length === 0 ? {} : { ca }),
      ...(clientCertificate === undefined ? {} : { clientCertificate }),
    };
  } catch (error) {
    if (error instanceof PublishError) return { problem: error };
    throw error;
  }
}

/** The first of them by name, where there are several: no more than one can be shown. */
async function readPair(folder: string, names: readonly string[]): Promise<HostCertificates['clientCertificate']> {
  const stems = (ending: string) =>
    names.filter((name) => name.endsWith(ending)).map((name) => name.slice(0, -ending.length));
  const keys = stems('.key');
  const certificates = stems('.cert');
  const lonelyKey = keys.find((stem) => !certificates.includes(stem));
  if (lonelyKey !== undefined) throw lonely(join(folder, `${lonelyKey}.key`), `${lonelyKey}.cert`);
  const lonelyCertificate = certificates.find((stem) => !keys.includes(stem));
  if (lonelyCertificate !== undefined)
    throw lonely(join(folder, `${lonelyCertificate}.cert`), `${lonelyCertificate}.key`);
  const [stem] = certificates;
  if (stem === undefined) return undefined;

  const certFile = join(folder, `${stem}.cert`);
  const keyFile = join(folder, `${stem}.key`);
  const cert = await readText(certFile);
  const key = await readText(keyFile);
  const certificate = parsed(() => new X509Certificate(cert), `no usable certificate in PEM: ${certFile}`);
  const privateKey = parsed(
    () => createPrivateKey(key),
    `no usable private key in PEM without a passphrase: ${keyFile}`,
  );
  if (!certificate.checkPrivateKey(privateKey))
    throw unfit(`the key does not belong to the certificate: ${keyFile}`, undefined);
  return { cert, key };
}

async function readAuthority(path: string): Promise<string> {
  const text = await readText(path);
  if (hasCertificates(text)) return text;
  throw unfit(`no usable certificate in PEM: ${path}`, undefined);
}

function parsed<T>(parse: () => T, message: string): T {
  try {
    return parse();
  } catch (error) {
    throw unfit(message, error);
  }
}

/** In alphabetical order. */
async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return (await readdir(folder)).sort();
  } catch (error) {
    // A file beside the hosts' folders, such as a README, is no host.
    if (codeOf(error) === 'ENOTDIR') return [];
    throw unreadable(folder, error);
  }
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw unreadable(path, error);
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error);
}

function unreadable(path: string, cause: unknown): PublishError {
  const hint = `Check the rights of ${path}, or remove it.`;
  return new PublishError('FILE_FAILED', `cannot read ${path} (${codeOf(cause)})`, hint, { cause });
}

function lonely(path: string, missing: string): PublishError {
  return unfit(`${path} has no ${missing} beside it`, undefined);
}

function unfit(message: string, cause: unknown): PublishError {
  const hint =
    'In certs.d, NAME.crt is an authority to trust; NAME.cert and NAME.key are what a client shows, both in PEM.';
  return new PublishError('CONFIG_INVALID', message, hint, cause === undefined ? {} : { cause });
}
