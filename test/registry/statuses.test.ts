import { describe, expect, test } from 'vitest';
import {
  CANCEL,
  COMMIT,
  HEAD,
  IMMUTABLE_WORDS,
  MOUNT,
  meaningOf,
  OPEN,
  PUT,
  READ,
} from '../../src/registry/statuses.ts';

describe('what a status means', () => {
  test.each([
    [READ, 200, 'found'],
    [READ, 404, 'absent'],
    [READ, 403, 'denied'],
    [READ, 206, 'failed'],
    [READ, 503, 'failed'],
    [HEAD, 200, 'present'],
    [HEAD, 404, 'absent'],
    [HEAD, 204, 'failed'],
    [HEAD, 405, 'failed'],
    [HEAD, 500, 'failed'],
    [MOUNT, 201, 'mounted'],
    [MOUNT, 200, 'session'],
    [MOUNT, 202, 'session'],
    [MOUNT, 204, 'session'],
    [MOUNT, 400, 'barred'],
    [MOUNT, 401, 'barred'],
    [MOUNT, 403, 'barred'],
    [MOUNT, 404, 'barred'],
    [MOUNT, 405, 'barred'],
    [MOUNT, 409, 'barred'],
    [MOUNT, 408, 'refused'],
    [MOUNT, 425, 'refused'],
    [MOUNT, 500, 'refused'],
    [MOUNT, 501, 'refused'],
    [MOUNT, 429, 'limited'],
    [OPEN, 202, 'session'],
    [OPEN, 201, 'failed'],
    [OPEN, 404, 'absent'],
    [OPEN, 405, 'refused'],
    [OPEN, 502, 'failed'],
    [COMMIT, 201, 'stored'],
    [COMMIT, 204, 'stored'],
    [COMMIT, 400, 'unsure'],
    [COMMIT, 404, 'gone'],
    [COMMIT, 409, 'gone'],
    [COMMIT, 413, 'refused'],
    [COMMIT, 416, 'gone'],
    [COMMIT, 500, 'failed'],
    [CANCEL, 204, 'works'],
    [CANCEL, 404, 'works'],
    [CANCEL, 401, 'barred'],
    [CANCEL, 405, 'barred'],
    [CANCEL, 503, 'unknown'],
    [PUT, 201, 'stored'],
    [PUT, 400, 'doubtful'],
    [PUT, 413, 'refused'],
    [PUT, 415, 'refused'],
    [PUT, 500, 'failed'],
    [READ, 302, 'failed'],
    [READ, 700, 'failed'],
  ])('%#: %i', (table, status, meaning) => {
    expect(meaningOf(table as typeof READ, status)).toBe(meaning);
  });
});

test.each([
  [
    "TAG_INVALID The image tag 'v1' already exists in the 'app' repository and cannot be overwritten because the repository is immutable.",
    true,
  ],
  ['TAG_IMMUTABLE', true],
  ['PRECONDITION Failed to process request', true],
  ['BLOB_UPLOAD_INVALID repository does not allow updating assets: docker', true],
  ['MANIFEST_INVALID manifest invalid', false],
  ['MANIFEST_BLOB_UNKNOWN blob unknown to registry', false],
])('words of an immutable tag: %s', (words, immutable) => {
  expect(IMMUTABLE_WORDS.test(words)).toBe(immutable);
});
