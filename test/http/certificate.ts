import { generateKeyPairSync, randomUUID, sign } from 'node:crypto';
import { isIP } from 'node:net';

/** A key and a certificate for it, signed by itself; both PEM. */
export type TestCertificate = { readonly key: string; readonly cert: string };

/** Makes a certificate in the bytes of X.509, since node can only read them (RFC 5280, section 4.1). */
export function selfSigned(
  names: readonly string[],
  days: { from: number; to: number } = { from: -1, to: 30 },
): TestCertificate {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const ecdsaWithSha256 = sequence(oid('2a8648ce3d040302'));
  // Each its own, or one authority would be taken for another.
  const subject = sequence(set(sequence(oid('550403'), tlv(0x0c, Buffer.from(randomUUID())))));
  const date = (offset: number) => {
    const text = new Date(Date.now() + offset * 86_400_000).toISOString().replace(/[-:T]|\.\d+/g, '');
    return tlv(0x18, Buffer.from(text));
  };
  const altNames = names.map((name) =>
    isIP(name) === 0 ? tlv(0x82, Buffer.from(name)) : tlv(0x87, Buffer.from(addressBytes(name))),
  );
  const extensions = sequence(
    sequence(oid('551d11'), tlv(0x04, sequence(...altNames))),
    // basicConstraints CA:TRUE, so that it can be trusted as its own authority.
    sequence(oid('551d13'), tlv(0x01, Buffer.from([0xff])), tlv(0x04, sequence(tlv(0x01, Buffer.from([0xff]))))),
  );
  const body = sequence(
    tlv(0xa0, tlv(0x02, Buffer.from([2]))),
    tlv(0x02, Buffer.from([0x01, Math.floor(Math.random() * 128)])),
    ecdsaWithSha256,
    subject,
    sequence(date(days.from), date(days.to)),
    subject,
    publicKey.export({ type: 'spki', format: 'der' }),
    tlv(0xa3, extensions),
  );
  const signature = sign('sha256', body, privateKey);
  const der = sequence(body, ecdsaWithSha256, tlv(0x03, Buffer.concat([Buffer.from([0]), signature])));
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n'),
  };
}

/** An IPv6 address must be written out, but for one `::`. */
function addressBytes(address: string): readonly number[] {
  if (isIP(address) === 4) return address.split('.').map(Number);
  const [head = [], tail = []] = address.split('::').map((half) => half.split(':').filter((group) => group !== ''));
  const groups = [...head, ...Array<string>(8 - head.length - tail.length).fill('0'), ...tail];
  return groups.flatMap((group) => [Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 0xff]);
}

function tlv(tag: number, content: Buffer): Buffer {
  const { length } = content;
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return tlv(0x30, Buffer.concat(parts));
}

function set(...parts: readonly Buffer[]): Buffer {
  return tlv(0x31, Buffer.concat(parts));
}

function oid(hex: string): Buffer {
  return tlv(0x06, Buffer.from(hex, 'hex'));
}
