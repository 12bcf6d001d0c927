import type { Authorizer, Scope } from '../auth/scope.ts';
import { type ErrorCode, type ErrorSide, PublishError } from '../errors.ts';
import type { HttpRequest, HttpResponse, Transport } from '../http/message.ts';
import type { VerbOptions } from './client.ts';
import { answerFacts } from './probe-facts.ts';

/** What all verbs of one host share. */
export type Wire = {
  /** As the user knows it, for example `docker.io`. */
  readonly host: string;
  readonly transport: Transport;
  readonly authorizer: Authorizer;
  /** What to ask for when this repository is read; see {@link createAccess}. */
  readonly access: Access;
};

/** The rights that reads of a repository ask for. */
export interface Access {
  /** From now on, reads of this repository ask for push as well. */
  pushing(repository: string): void;
  actionsFor(repository: string): Scope['actions'];
}

/**
 * A repository that will be pushed to is read with the token of its pushes: one token round instead of two, and a
 * missing right to push shows before anything is written.
 */
export function createAccess(): Access {
  const pushed = new Set<string>();
  return {
    pushing: (repository) => {
      pushed.add(repository);
    },
    actionsFor: (repository) => (pushed.has(repository) ? 'pull,push' : 'pull'),
  };
}

/** A request to the registry's own API, or to a session that it named. */
export type WireRequest = Pick<
  HttpRequest,
  'method' | 'headers' | 'body' | 'retries' | 'once' | 'headersTimeout' | 'aside'
> & {
  /** A path of the API, or the whole URL that a Location gave. */
  readonly to: { readonly path: string } | { readonly session: URL };
  /** The target's first: some token servers read only one. */
  readonly scopes: readonly Scope[];
};

/**
 * Sends with the credential of the wire's host; a session elsewhere gets none, which the authorizer sees to.
 *
 * @throws what the transport and the authorizer throw, told as a failure of the step
 */
export async function sendTo(
  wire: Wire,
  step: Step,
  request: WireRequest,
  options: VerbOptions,
): Promise<HttpResponse> {
  const { to, scopes, ...rest } = request;
  const target =
    'path' in to
      ? { url: new URL(to.path, wire.transport.baseUrl(wire.host)) }
      : { url: to.session, namedBy: wire.host };
  const place = {
    ...(options.place === undefined ? {} : { place: options.place }),
    ...(options.last === undefined ? {} : { last: options.last }),
  };
  try {
    const sent = { ...rest, ...target, signal: options.signal, ...place };
    const response = await wire.authorizer.send(sent, wire.host, scopes);
    options.onAnswer?.(answerFacts(response));
    return response;
  } catch (error) {
    // The end of a run is no failure of this step, whatever it ended by.
    throw options.signal.aborted ? error : ofStep(step, error);
  }
}

/** What the transport throws knows the host at most, not what was being done there. */
const PLACELESS: readonly ErrorCode[] = ['NETWORK_FAILED', 'TLS_FAILED', 'PROTOCOL_VIOLATED', 'RATE_LIMITED'];

/** The transport's error as one of the step; any other stays as it is. */
export function ofStep(step: Step, error: unknown): unknown {
  return error instanceof PublishError && PLACELESS.includes(error.code) ? named(step, error) : error;
}

/** The error with the step in front and its place in the details. */
export function named({ doing, side, host, repository }: Step, error: PublishError): PublishError {
  const message = error.message.startsWith(doing) ? error.message : `${doing}: ${error.message}`;
  return error.with({ message, side, registry: host, repository });
}

/** What is being done, for messages. */
export type Step = {
  /** A gerund and the reference in full: `reading docker.io/acme/app:1`. */
  readonly doing: string;
  /** `docker.io/acme/app:1`, `docker.io/acme/app`, … */
  readonly name: string;
  /** As the user knows it. */
  readonly host: string;
  readonly repository: string;
  readonly side: ErrorSide;
  /** The rights that its requests ask for. */
  readonly needs: Scope['actions'];
};

/** A step that reads; `reference` with its `:` or `@`. */
export function readingStep(wire: Wire, doing: string, repository: string, reference: string, side: ErrorSide): Step {
  const name = `${wire.host}/${repository}${reference}`;
  return {
    doing: `${doing} ${name}`,
    name,
    host: wire.host,
    repository,
    side,
    needs: wire.access.actionsFor(repository),
  };
}

/** A step that writes to the target. */
export function writingStep(wire: Wire, doing: string, repository: string, reference: string): Step {
  const name = `${wire.host}/${repository}${reference}`;
  return { doing: `${doing} ${name}`, name, host: wire.host, repository, side: 'target', needs: 'pull,push' };
}

/** The scope of a step. */
export function scopeOf({ repository, needs }: Step): Scope {
  return { repository, actions: needs };
}
