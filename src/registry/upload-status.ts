import { PublishError } from '../errors.ts';
import type { HttpResponse } from '../http/message.ts';
import type { Interrupted, ResumePoint, UploadSession, VerbOptions } from './client.ts';
import { rangeEnd, resolveLocation } from './protocol.ts';
import { meaningOf, SESSION } from './statuses.ts';
import type { UploadLessons } from './upload-lessons.ts';
import { scopeOf, sendTo, type Wire, writingStep } from './wire.ts';

/** The session as the answer leaves it: at its newest Location, or where it was when there is none. */
export function movedTo(wire: Wire, session: UploadSession, response: Pick<HttpResponse, 'headers' | 'url'>) {
  const url = resolveLocation(response.headers['location'], response.url, wire.transport.baseUrl(wire.host));
  return url === undefined || url === session.url ? session : { ...session, url };
}

/**
 * Where an upload that broke may go on. What the session says is believed only as far as bytes had left; whether it is
 * true shows in the digest, since Quay and Gitea tell one byte too many and ECR tells the first chunk for ever.
 *
 * @see RegistryClient.resumeUpload
 * @see distribution-spec v1.1.1 spec.md, end-13
 */
export async function resumeUpload(
  wire: Wire,
  lessons: UploadLessons,
  interrupted: Interrupted,
  options: VerbOptions,
): Promise<ResumePoint | 'smaller' | undefined> {
  const { sent, marks, cut } = interrupted;
  if (!lessons.resumes()) return undefined;
  const known = interrupted.offset;
  const asked = known === undefined ? await askSession(wire, interrupted.session, options) : undefined;
  const session = asked?.session ?? interrupted.session;
  const offset = known ?? asked?.offset;
  if (offset === 0 && cut !== undefined && lessons.cut(cut)) return 'smaller';
  if (offset === undefined || offset <= 0 || offset > sent) return undefined;
  const mark = marks.findLast((one) => one.offset <= offset);
  return mark === undefined ? undefined : { session, offset, mark };
}

type Standing = { readonly session: UploadSession; readonly offset: number | undefined };

/** Undefined when the session is gone, or cannot be asked. */
async function askSession(wire: Wire, session: UploadSession, options: VerbOptions): Promise<Standing | undefined> {
  const step = writingStep(wire, 'asking how far an upload got to', session.repository, '');
  try {
    const request = { method: 'GET', to: { session: new URL(session.url) }, scopes: [scopeOf(step)] } as const;
    const response = await sendTo(wire, step, request, options);
    await response.discard();
    if (meaningOf(SESSION, response.status) === 'lost') return undefined;
    return { session: movedTo(wire, session, response), offset: rangeEnd(response.headers) };
  } catch (error) {
    // A new session is what remains in any case, and what is wrong with the registry shows there.
    if (error instanceof PublishError && !options.signal.aborted) return undefined;
    throw error;
  }
}
