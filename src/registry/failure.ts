import { elsewhereAdvice } from '../auth/advice.ts';
import { type ErrorCode, PublishError } from '../errors.ts';
import { type ErrorBody, readErrorBody } from '../http/error-body.ts';
import type { HttpResponse } from '../http/message.ts';
import { isHtml } from './protocol.ts';
import type { Step, Wire } from './wire.ts';

/** An answer that was not the wanted one; its body has been read and ended. */
export type Refusal = ErrorBody & {
  readonly status: number;
  /** A page, as proxies in front of registries send them. */
  readonly html: boolean;
  /** The host that answered, which need not be the one the user wrote: `registry-1.docker.io`. */
  readonly answeredBy: string;
  readonly sends: number;
};

/** Reads what a registry says about its refusal. */
export async function readRefusal(response: HttpResponse): Promise<Refusal> {
  return {
    ...(await readErrorBody(response)),
    status: response.status,
    html: isHtml(response.headers),
    answeredBy: response.url.host,
    sends: response.sends,
  };
}

/** `registry-1.docker.io answered 403 DENIED (2 tries): "…"`; the registry's words are quoted as its own. */
export function describeRefusal({ answeredBy, status, codes, message, detail, html, sends }: Refusal): string {
  const facts = [...(html ? ['an HTML page, answered by a proxy'] : []), ...(sends > 1 ? [`${sends} tries`] : [])];
  const aside = facts.length === 0 ? '' : ` (${facts.join(', ')})`;
  const words = [message, detail].filter((text) => text !== undefined && text !== '').map((text) => `"${text}"`);
  const said = words.length === 0 ? '' : `: ${words.join(', ')}`;
  return `${answeredBy} answered ${[status, ...new Set(codes)].join(' ')}${aside}${said}`;
}

/** Everything the registry said, for rules that look for words. */
export function wordsOf({ codes, message, detail }: Refusal): string {
  return [...codes, message ?? '', detail ?? ''].join(' ');
}

/** A refusal as the error of its step; `note` tells more than the step does. */
export function refusedWith(
  code: ErrorCode,
  step: Step,
  refusal: Refusal,
  hint: string,
  note: string = step.doing,
): PublishError {
  return new PublishError(code, `${note}: ${describeRefusal(refusal)}`, hint, detailsOf(step, refusal.status));
}

/**
 * Refusals that mean the same for every verb. `unauthorized`: a 401 that a new authentication did not cure. `denied`:
 * a 403, which is also what used-up quotas look like (Quay, Harbor, Gitea). `limited`: a 429 that lasted through all
 * tries. `failed`: a 5xx that did, or an answer that has no meaning here.
 */
export async function failureFor(
  meaning: 'unauthorized' | 'denied' | 'limited' | 'failed',
  wire: Wire,
  step: Step,
  refusal: Refusal,
): Promise<PublishError> {
  switch (meaning) {
    case 'unauthorized':
    case 'denied': {
      const code = meaning === 'denied' ? 'DENIED' : 'UNAUTHORIZED';
      if (refusal.answeredBy !== wire.transport.baseUrl(wire.host).host) {
        const { login, hint } = elsewhereAdvice(wire.host, refusal.answeredBy);
        return refusedWith(code, step, refusal, hint, `${step.doing}: ${login}`);
      }
      const { login, hint } = await wire.authorizer.advise(wire.host, step.repository);
      const note = `${step.doing} needs ${step.needs}, and ${login}`;
      return refusedWith(code, step, refusal, hint, note);
    }
    case 'limited': {
      const hint = `Wait, then run the same command again; --max-rps ${step.host}=N keeps below a limit, and a login may raise it.`;
      return refusedWith('RATE_LIMITED', step, refusal, hint);
    }
    case 'failed': {
      const hint = SPEAKS_TLS.test(wordsOf(refusal))
        ? 'Leave out --plain-http: this registry speaks TLS.'
        : 'Run the same command again later; what has been placed stays.';
      return refusedWith('REGISTRY_FAILED', step, refusal, hint);
    }
  }
}

/** What Go's and nginx's servers say to plain http on a port for https. */
const SPEAKS_TLS = /HTTP request (?:to an HTTPS server|was sent to HTTPS port)/i;

/** An answer that breaks the protocol although its status is good. */
export function violated(step: Step, response: HttpResponse, what: string): PublishError {
  return new PublishError(
    'PROTOCOL_VIOLATED',
    `${step.doing}: ${response.url.host} answered ${response.status} ${what}`,
    'Check what stands between you and the registry; a proxy or a login page may be answering for it.',
    detailsOf(step, response.status),
  );
}

/** Where a step failed, for any error of it. */
export function detailsOf(step: Step, status: number) {
  return { side: step.side, registry: step.host, repository: step.repository, status } as const;
}
