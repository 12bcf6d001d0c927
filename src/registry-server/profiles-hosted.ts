import type { NamedProfile } from './profiles.ts';

const MIB = 1024 * 1024;

/** Registries that are rented; add one here. */
export const HOSTED: readonly NamedProfile[] = [
  {
    name: 'ecr-off',
    title: 'Amazon ECR without blob mounting: every mount is answered 202',
    date: '2026-11-30',
    sources: [
      'docs.aws.amazon.com/AmazonECR, blob-mounting',
      'aws/containers-roadmap#2831',
      'regclient scheme/reg/blob.go',
    ],
    mark: 'report',
    changes: {
      mount: { mode: 'ignore' },
      upload: {
        patchStatus: '201',
        patchRange: 'stuck',
        chunk: { min: 5 * MIB, max: 10 * MIB, maxStatus: 400 },
        sameSessionRestart: '416',
      },
      repo: { missing: '404nameUnknown' },
      auth: { scheme: 'basic', anonymousPull: false },
    },
  },
  {
    name: 'ecr-mounting',
    title: 'Amazon ECR with BLOB_MOUNTING enabled: 201 only for what a manifest of the source names',
    date: '2026-11-30',
    sources: ['aws/containers-roadmap#2860'],
    mark: 'report',
    over: 'ecr-off',
    changes: { mount: { mode: 'referenced' } },
  },
  {
    name: 'ecr-immutable',
    title: 'Amazon ECR with immutable tags: 400 for a tag that exists, even with the same digest',
    date: '2026-11-30',
    sources: ['moby/buildkit#3776', 'aws/containers-roadmap#2380'],
    mark: 'report',
    over: 'ecr-off',
    changes: { manifest: { immutable: '400evenSame' } },
  },
  {
    name: 'ecr-public',
    title: 'Amazon ECR Public: every mount is answered 202, tokens, public pulls',
    date: '2026-11-30',
    sources: ['aws/containers-roadmap#1459', 'estesp/manifest-tool#124'],
    mark: 'report',
    over: 'ecr-off',
    changes: {
      auth: { scheme: 'bearer', anonymousPull: true },
    },
  },
  {
    name: 'ecr-public-limited',
    title: 'Amazon ECR Public with its rates: ten commits a second, 429 without Retry-After',
    date: '2026-11-30',
    sources: ['docs.aws.amazon.com/AmazonECR, public-service-quotas', 'aws/aws-lambda-web-adapter#429'],
    mark: 'report',
    over: 'ecr-public',
    changes: { limit: { pull: { perSec: 10, retryAfter: 0 }, commitPerSec: 10, retryAfter: 0 } },
  },
  {
    name: 'docker-hub',
    title: 'Docker Hub: tokens for target and source, pull limit, blobs from another host',
    date: '2026-11-30',
    sources: [
      'docs.docker.com/reference/api/registry',
      'docs.docker.com/docker-hub/usage/pulls',
      'oras-project/rust-oci-client#235',
    ],
    mark: 'report',
    changes: {
      mount: { noSourceScope: '401bearer2' },
      auth: { scheme: 'bearer' },
      blob: { redirect: '307rejectsAuth400' },
      limit: { pull: { perWindow: 100, headers: true, retryAfter: 0 }, body: 'text' },
    },
  },
  {
    name: 'ghcr',
    title: 'GitHub Container Registry: chunks up to 4 MiB, no cancel, denied tokens are 403',
    date: '2026-11-30',
    sources: [
      'oras-project/rust-oci-client#35',
      'ocx-sh/ocx#237',
      'radius-project/radius#12623',
      'cloudflare/serverless-registry#148',
    ],
    mark: 'report',
    changes: {
      upload: { chunk: { max: 4 * MIB, maxStatus: 416 }, cancel: '405' },
      auth: { scheme: 'bearer', ping: 'placeholderScope', denied: '403' },
    },
  },
  {
    name: 'gar',
    title: 'Google Artifact Registry: no chunks, POST needs a length, sessions on another path',
    date: '2026-11-30',
    sources: ['dotnet/sdk-container-builds#287', 'oras-project/rust-oci-client#176', 'containers/skopeo#1101'],
    mark: 'report',
    changes: {
      upload: { postNeedsLength: '411html', patch: 'streamOnly', location: 'otherPath' },
      auth: { scheme: 'bearer', token: { post: false, postStatus: 404 } },
    },
  },
  {
    name: 'acr',
    title: 'Azure Container Registry: bodies need a length, relative Location',
    date: '2026-11-30',
    sources: ['goharbor/harbor#23016', 'dotnet/sdk-container-builds#258'],
    mark: 'report',
    changes: {
      upload: { noLength: '400', location: 'relative' },
      auth: { scheme: 'bearer' },
    },
  },
  {
    name: 'quay',
    title: 'Quay: one scope a parameter, GET only, odd ranges, immutable tags answer 409',
    date: '2026-08-21',
    sources: ['quay/quay endpoints/v2/blob.py, manifest.py, v2auth.py'],
    mark: 'source',
    changes: {
      mount: { noSourceScope: '202' },
      upload: { postRange: 'bytes=0--1', status: 'noLocation+plusOne', singlePost: '201', ttlSec: 3600 },
      repo: { missing: 'createOnPushToken' },
      manifest: { childError: '400 MANIFEST_INVALID', immutable: '409' },
      delete: { blob: '405' },
      auth: { scheme: 'bearer', scopes: 'repeatedOnly400', token: { post: false, postStatus: 405, ttl: 3600 } },
    },
  },
  {
    name: 'quay-old',
    title: 'Quay of some years ago: mount without from is an error',
    date: '2026-11-30',
    sources: ['google/go-containerregistry pkg/v1/remote/write.go, comment', 'regclient/regclient#398'],
    mark: 'report',
    over: 'quay',
    changes: { mount: { withoutFrom: 'error400' } },
  },
];
