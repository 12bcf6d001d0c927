import { crc32 } from 'node:zlib';
import { type Digest, digestOf } from '../model/digest.ts';
import { generateBytes } from './content.ts';

/** A layer as a registry stores it, and the digest of the archive inside. */
export type Layer = { readonly bytes: Buffer; readonly diffId: Digest };

/** Archive blocks, and the longest text that a gzip header field may have for Go's reader. */
const BLOCK = 512;
const STORED_MAX = 65_535;
const NAME_MAX = 400;

/**
 * A gzip of a tar of one file with random bytes, exactly `size` bytes long, the same on every machine: the deflate
 * stream is made of stored blocks, since the output of a compressor may change with its version. Below 2 KiB there is
 * no room for an archive, and the layer is plain bytes.
 */
export function makeLayer(seed: string, size: number): Layer {
  if (size < 4 * BLOCK) {
    const bytes = generateBytes(seed, size);
    return { bytes, diffId: digestOf(bytes) };
  }
  let payload = Math.floor((size - 4 * BLOCK + BLOCK) / BLOCK) * BLOCK;
  while (gzipLength(tarLength(payload)) > size) payload -= BLOCK;
  const tar = makeTar(`usr/share/seed/${digestOf(Buffer.from(seed)).slice(7, 19)}`, generateBytes(seed, payload));
  const padding = size - gzipLength(tar.length);
  return { bytes: gzipStored(tar, padding), diffId: digestOf(tar) };
}

function tarLength(payload: number): number {
  return BLOCK + payload + 2 * BLOCK;
}

/** @see POSIX.1-1988 ustar */
function makeTar(name: string, content: Buffer): Buffer {
  const header = Buffer.alloc(BLOCK);
  const octal = (value: number, at: number, width: number): void => {
    header.write(value.toString(8).padStart(width - 1, '0'), at, 'latin1');
  };
  header.write(name, 0, 100, 'latin1');
  octal(0o644, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(content.length, 124, 12);
  octal(0, 136, 12);
  header.write('        0', 148, 'latin1');
  header.write('ustar\u000000', 257, 'latin1');
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\u0000 `, 148, 'latin1');
  return Buffer.concat([header, content, Buffer.alloc(2 * BLOCK)]);
}

/** Header 10, two empty text fields 2, stored blocks 5 each, checksum and length 8. */
function gzipLength(plain: number): number {
  return 12 + Math.ceil(plain / STORED_MAX) * 5 + plain + 8;
}

/** @see RFC 1952; the name and comment fields of the header hold the padding */
function gzipStored(plain: Buffer, padding: number): Buffer {
  const name = Math.min(padding, NAME_MAX);
  const texts = Buffer.from(`${'n'.repeat(name)}\u0000${'c'.repeat(padding - name)}\u0000`, 'latin1');
  const pieces: Buffer[] = [Buffer.from([0x1f, 0x8b, 8, 0x18, 0, 0, 0, 0, 0, 255]), texts];
  for (let at = 0; at < plain.length; at += STORED_MAX) {
    const part = plain.subarray(at, at + STORED_MAX);
    const head = Buffer.alloc(5);
    head.writeUInt8(at + part.length === plain.length ? 1 : 0);
    head.writeUInt16LE(part.length, 1);
    head.writeUInt16LE(part.length ^ 0xffff, 3);
    pieces.push(head, part);
  }
  const tail = Buffer.alloc(8);
  tail.writeUInt32LE(crc32(plain));
  tail.writeUInt32LE(plain.length, 4);
  return Buffer.concat([...pieces, tail]);
}
