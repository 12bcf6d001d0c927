import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { checkServerIdentity, type PeerCertificate } from 'node:tls';

/**
 * node's own check, but for addresses: with Node 22.23.3 it takes every IPv6 address for a name, which stands in no
 * certificate. As there, only addresses among the alternative names count.
 *
 * @see RFC 9110, section 4.3.5
 */
export function checkIdentity(host: string, certificate: PeerCertificate): Error | undefined {
  if (isIP(host) === 0) return checkServerIdentity(host, certificate);
  if (new X509Certificate(certificate.raw).checkIP(host) !== undefined) return undefined;
  return Object.assign(new Error(`the certificate is not for the address ${host}`), {
    code: 'ERR_TLS_CERT_ALTNAME_INVALID',
  });
}
