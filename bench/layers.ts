import { createCipheriv, createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { createGzip } from 'node:zlib';

const BLOCK = 512; // tar, POSIX.1-1988 ustar
const CHUNK = 64 * 1024;

/**
 * A layer: tar.gz with one file of `size` incompressible bytes. The same seed gives the same bytes on every machine.
 * Made piece by piece, so that a layer of any size costs no memory.
 */
export function layerStream(seed: string, size: number): Readable {
  // Level 0 stores: random bytes do not shrink, and deflating a GiB of them would take half a minute.
  return Readable.from(tar(seed, size)).pipe(createGzip({ level: 0 }));
}

function* tar(seed: string, size: number): Generator<Buffer> {
  yield header('random', size);
  yield* randomBytes(seed, size);
  yield Buffer.alloc(((BLOCK - (size % BLOCK)) % BLOCK) + 2 * BLOCK);
}

/** AES-CTR over zeros: fast, and the seed decides every byte. Not a secret. */
function* randomBytes(seed: string, size: number): Generator<Buffer> {
  const key = createHash('sha256').update(seed).digest();
  const cipher = createCipheriv('aes-256-ctr', key, Buffer.alloc(16));
  for (let left = size; left > 0; left -= CHUNK) yield cipher.update(Buffer.alloc(Math.min(left, CHUNK)));
}

function header(name: string, size: number): Buffer {
  const block = Buffer.alloc(BLOCK);
  block.write(name, 0);
  block.write('0000644\0', 100);
  block.write('0000000\0', 108);
  block.write('0000000\0', 116);
  block.write(`${size.toString(8).padStart(11, '0')}\0`, 124);
  block.write('00000000000\0', 136);
  block.write('        ', 148); // the checksum counts itself as blanks
  block.write('0', 156);
  block.write('ustar\x0000', 257);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return block;
}
