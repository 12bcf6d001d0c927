import { Readable } from 'node:stream';
import { PublishError } from '../errors.ts';
import type { HttpResponse } from '../http/message.ts';
import { BlobBody, type Opened } from './blob-body.ts';
import type { BlobIdentity, BlobOptions, VerbOptions } from './client.ts';
import { continues } from './protocol.ts';
import { foundBlob } from './read.ts';
import { readingStep, type Step, type Wire } from './wire.ts';

/** @see RegistryClient.openBlob */
export async function openBlob(
  wire: Wire,
  retries: number,
  repository: string,
  blob: BlobIdentity,
  { from = 0, reads = { fruitless: 0 }, ...options }: BlobOptions,
): Promise<Readable> {
  const step = readingStep(wire, 'reading', repository, `@${blob.digest}`, 'source');
  if (from > 0 && from >= blob.size) return Readable.from([], { objectMode: false });
  const open = (at: number, verb: VerbOptions, left?: number) => openAt(wire, step, blob, { at, left }, verb);
  return new BlobBody(await open(from, options), from, { open, options, retries, reads });
}

/** `left`: how often it may be asked again, if that is not for the transport to say. */
type Start = { readonly at: number; readonly left: number | undefined };

/** Only a 206 that says exactly what was asked for is believed; any other answer is read from the start. */
async function openAt(
  wire: Wire,
  step: Step,
  blob: BlobIdentity,
  { at, left }: Start,
  options: VerbOptions,
): Promise<Opened> {
  const response = await found(wire, step, blob, options, { at, left });
  if (response.status !== 206) return { body: response.stream(), skip: at };
  if (continues(response.headers, at, blob.size)) return { body: response.stream(), skip: 0 };
  await response.discard();
  return { body: (await found(wire, step, blob, options, { at: 0, left })).stream(), skip: at };
}

async function found(
  wire: Wire,
  step: Step,
  blob: BlobIdentity,
  options: VerbOptions,
  { at, left }: Start,
): Promise<HttpResponse> {
  const retries = left === undefined ? {} : { retries: left };
  const response = await foundBlob(wire, step, blob, options, { from: at, ...retries });
  if (response instanceof PublishError) throw response;
  return response;
}
