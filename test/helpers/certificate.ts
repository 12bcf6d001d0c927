import { join } from 'node:path';
import { needProgram, run } from './processes.ts';

/** A certificate for 127.0.0.1 that signs itself, and its key; PEM files made with openssl, worth nothing afterwards. */
export type Certificate = { readonly file: string; readonly keyFile: string };

/** Makes one in `folder`; `name` stands in it and before the names of the files. */
export async function makeCertificate(folder: string, name: string): Promise<Certificate> {
  const certificate = { file: join(folder, `${name}-certificate.pem`), keyFile: join(folder, `${name}-key.pem`) };
  const made = await run(needProgram('openssl'), [
    ...['req', '-x509', '-nodes', '-days', '2', '-subj', `/CN=${name}`, '-addext', 'subjectAltName=IP:127.0.0.1'],
    ...['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256'],
    ...['-keyout', certificate.keyFile, '-out', certificate.file],
  ]);
  if (made.exitCode !== 0) throw new Error(`openssl could not make a certificate: ${made.stderr}`);
  return certificate;
}
