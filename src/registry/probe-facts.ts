import type { HttpResponse } from '../http/message.ts';
import { parseUrl } from '../model/url.ts';
import type { AnswerFacts } from './client.ts';

/**
 * Headers by which a registry, or what stands before it, can be told. None of them holds an address or an id: those
 * may be signed.
 */
const TELLING: readonly string[] = [
  'docker-distribution-api-version',
  'oci-chunk-min-length',
  'oci-chunk-max-length',
  'server',
  'via',
  'x-jfrog-version',
  'x-sparse-manifest-support',
];

/** Headers whose presence says as much as their value, which is an id. */
const PRESENT: readonly string[] = ['x-artifactory-id', 'x-github-request-id', 'cf-ray', 'x-amz-cf-id'];

/** Longest value that is told, in UTF-16 units. */
const VALUE_MAX = 80;

/** @see AnswerFacts */
export function answerFacts({ status, headers, url }: Pick<HttpResponse, 'status' | 'headers' | 'url'>): AnswerFacts {
  const told: Record<string, string> = {};
  for (const name of TELLING) {
    const value = headers[name]?.trim().slice(0, VALUE_MAX);
    if (value !== undefined && value !== '') told[name] = value;
  }
  for (const name of PRESENT) if (headers[name] !== undefined) told[name] = 'present';
  const location = locationForm(headers['location']?.trim(), url);
  return { status, headers: told, ...(location === undefined ? {} : { location }) };
}

function locationForm(location: string | undefined, answeredAt: URL): AnswerFacts['location'] {
  const url = location === undefined || location === '' ? undefined : parseUrl(location, answeredAt);
  if (location === undefined || url === undefined) return undefined;
  if (url.host !== answeredAt.host) return 'on another host';
  return /^[a-z][a-z+.-]*:/i.test(location) || location.startsWith('//') ? 'absolute' : 'relative';
}
