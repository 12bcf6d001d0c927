import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { PublishError } from '../errors.ts';
import type { HostSettings } from '../http/endpoint.ts';
import type { Environment } from './runtime.ts';
import type { NetworkSettings } from './settings.ts';

/** Certificates to trust besides the built-in ones, in PEM: for all hosts, and by host. */
export type Authorities = {
  readonly ca: readonly string[];
  readonly hosts: Readonly<Record<string, HostSettings>>;
};

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

/**
 * Reads the files of `--ca-file`, of the configuration and of `SSL_CERT_FILE`, which is Go's name for it and what
 * users of docker, crane and skopeo have set.
 *
 * @throws PublishError `FILE_FAILED` when a file cannot be read, `CONFIG_INVALID` when it holds no certificate
 */
export async function readAuthorities(network: NetworkSettings, env: Environment): Promise<Authorities> {
  const extra = env['NODE_EXTRA_CA_CERTS'];
  const common = [
    ...(network.caFile === undefined ? [] : [await readCertificates(network.caFile, '--ca-file')]),
    // Node trusts what NODE_EXTRA_CA_CERTS names already, and reading 150 certificates again costs 40 ms of CPU.
    ...(env['SSL_CERT_FILE'] === extra ? [] : await fromEnvironment(env['SSL_CERT_FILE'])),
  ];
  const hosts: Record<string, HostSettings> = {};
  for (const [host, { insecure, plainHttp, caFile }] of Object.entries(network.hosts)) {
    hosts[host] = {
      ...(insecure === undefined ? {} : { insecure }),
      ...(plainHttp === undefined ? {} : { plainHttp }),
      ...(caFile === undefined ? {} : { ca: [await readCertificates(caFile, `caFile of ${host}`)] }),
    };
  }
  const named = common.length > 0 || Object.values(hosts).some((host) => host.ca !== undefined);
  // Node itself adds this file to its own list, but not to a list that is given.
  const ca = named ? [...common, ...(await fromEnvironment(extra))] : [];
  return { ca, hosts };
}

/** As Go and Node do, a variable that names no readable certificate is passed over. */
async function fromEnvironment(path: string | undefined): Promise<readonly string[]> {
  if (path === undefined || path === '') return [];
  const text = await readFile(path, 'utf8').catch(() => '');
  return text.match(CERTIFICATE) === null ? [] : [text];
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
  const certificates = text.match(CERTIFICATE) ?? [];
  try {
    for (const certificate of certificates) new X509Certificate(certificate);
    if (certificates.length > 0) return text;
  } catch (error) {
    throw noCertificate(path, name, error);
  }
  throw noCertificate(path, name, undefined);
}

function noCertificate(path: string, name: string, cause: unknown): PublishError {
  return new PublishError(
    'CONFIG_INVALID',
    `the file of ${name} holds no usable certificate: ${path}`,
    'Name a PEM file with -----BEGIN CERTIFICATE----- in it.',
    { cause },
  );
}
