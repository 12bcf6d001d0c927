import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { PublishError } from '../errors.ts';
import type { NetworkSettings } from './settings.ts';

/** What this machine shows of itself to a registry that asks for it (mutual TLS), both in PEM. */
export type ClientCertificate = { readonly cert: string; readonly key: string };

/**
 * Reads `certFile` and `keyFile` of the hosts that have them. What is wrong with them is found here: the TLS library
 * would say so only when the registry is spoken to, and in words that name no file.
 *
 * @throws PublishError `FILE_FAILED` when a file cannot be read, `CONFIG_INVALID` when the two are no pair
 */
export async function readClientCertificates(
  network: NetworkSettings,
): Promise<ReadonlyMap<string, ClientCertificate>> {
  const certificates = new Map<string, ClientCertificate>();
  for (const [host, { certFile, keyFile }] of Object.entries(network.hosts)) {
    if (certFile === undefined && keyFile === undefined) continue;
    // The configuration refuses this with its line; the library door has callers that no one has checked.
    if (certFile === undefined || keyFile === undefined) {
      throw unfit(`${host} has one of certFile and keyFile`, 'Name both; one file may hold both.', undefined);
    }
    const cert = await read(certFile, `certFile of ${host}`);
    const key = await read(keyFile, `keyFile of ${host}`);
    checkPair(host, { cert, key }, { certFile, keyFile });
    certificates.set(host, { cert, key });
  }
  return certificates;
}

async function read(path: string, name: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    const hint = `Check the name and the rights of the file: ${path}`;
    throw new PublishError('FILE_FAILED', `cannot read the ${name}: ${path} (${reason})`, hint, { cause: error });
  }
}

function checkPair(
  host: string,
  { cert, key }: ClientCertificate,
  files: { readonly certFile: string; readonly keyFile: string },
): void {
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(cert);
  } catch (error) {
    const message = `the certFile of ${host} holds no usable certificate: ${files.certFile}`;
    throw unfit(message, 'Name a PEM file with -----BEGIN CERTIFICATE----- in it.', error);
  }
  let privateKey: KeyObject;
  try {
    privateKey = createPrivateKey(key);
  } catch (error) {
    const message = `the keyFile of ${host} holds no usable private key: ${files.keyFile}`;
    throw unfit(message, 'Name a PEM file with a private key that no passphrase protects.', error);
  }
  if (certificate.checkPrivateKey(privateKey)) return;
  throw unfit(
    `certFile and keyFile of ${host} do not belong together: ${files.certFile}, ${files.keyFile}`,
    'Name the key that the certificate was made for.',
    undefined,
  );
}

function unfit(message: string, hint: string, cause: unknown): PublishError {
  return new PublishError('CONFIG_INVALID', message, hint, cause === undefined ? {} : { cause });
}
