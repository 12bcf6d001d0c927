import { X509Certificate } from 'node:crypto';

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

/** Whether the text, in PEM, holds certificates that can be used, and none that cannot. */
export function hasCertificates(text: string): boolean {
  const certificates = text.match(CERTIFICATE) ?? [];
  return certificates.length > 0 && certificates.every(isUsable);
}

/** Whether the text looks as if it held any; reading them takes 0.3 ms each, and bundles have 150. */
export function mayHoldCertificates(text: string): boolean {
  return text.search(CERTIFICATE) >= 0;
}

function isUsable(certificate: string): boolean {
  try {
    return new X509Certificate(certificate).raw.length > 0;
  } catch (error) {
    // OpenSSL has an error of its own for each way in which a certificate can be broken.
    if (error instanceof Error) return false;
    throw error;
  }
}
