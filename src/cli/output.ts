import { fstatSync, writeSync } from 'node:fs';
import { Writable } from 'node:stream';
import { PublishError } from '../errors.ts';
import type { ThemedStream } from '../ui/render.ts';

/** A stream of this process, by its descriptor. */
type Stream = NodeJS.WriteStream & { readonly fd: number };

/** stdout or stderr, and what has become of it. */
export type Output = {
  /** For whoever writes as things happen: it never throws, and what goes wrong is kept. */
  readonly stream: ThemedStream;
  /**
   * Resolves when the content has left this process; a reader that has gone away is not an error.
   *
   * @throws PublishError `FILE_FAILED` when this or something before it could not be written, as on a full disk
   */
  write(content: string | Uint8Array): Promise<void>;
  /** Why something could not be written. */
  failure(): PublishError | undefined;
};

/**
 * Writes to a stream of this process and keeps what goes wrong there. An error of the stream must go no further: it
 * would be told on the same stream, fail again, and so on without end.
 *
 * @param name for messages
 */
export function outputOn(own: Stream, name: 'stdout' | 'stderr'): Output {
  let failure: PublishError | undefined;
  // Whoever reads us may stop reading (`| head -1`): the work goes on, its exit code stands.
  const keep = (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') failure ??= outputError(name, error);
  };
  const kind = fstatSync(own.fd);
  const stream = own.isTTY || kind.isFIFO() || kind.isSocket() ? own : fileStream(own.fd, keep);
  stream.on('error', keep);
  return {
    stream,
    failure: () => failure,
    write: (content) =>
      new Promise((resolve, reject) => {
        stream.write(content, (error) => {
          if (error) keep(error);
          if (failure === undefined) resolve();
          else reject(failure);
        });
      }),
  };
}

/**
 * In the place of Node's stream for files and devices, which throws out of `write`, and writes once without a look at
 * how much of it was taken: a disk that fills up would cut the result, and nobody would know.
 */
function fileStream(fd: number, keep: (error: NodeJS.ErrnoException) => void): ThemedStream {
  return new Writable({
    write(chunk: Buffer, _encoding, done) {
      try {
        let rest = chunk;
        while (rest.length > 0) rest = rest.subarray(writeSync(fd, rest));
      } catch (error) {
        keep(error instanceof Error ? error : new Error(String(error)));
      }
      // Not with the error: the stream would then keep what comes later, and call nobody back.
      done();
    },
  });
}

function outputError(name: string, error: unknown): PublishError {
  const reason = error instanceof Error && 'code' in error ? String(error.code) : String(error);
  return new PublishError(
    'FILE_FAILED',
    `cannot write to ${name} (${reason})`,
    `Make room where ${name} goes, or send it elsewhere, and run the same command again.`,
    { cause: error },
  );
}
