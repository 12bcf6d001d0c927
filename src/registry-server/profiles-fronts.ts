import type { NamedProfile } from './profiles.ts';

const MIB = 1024 * 1024;

/** What stands in front of a registry, and registries that stand in front of another; add one here. */
export const FRONTS: readonly NamedProfile[] = [
  {
    name: 'distribution-badproxy',
    title: 'distribution behind a proxy that ends TLS and hides it: Locations name http, which is a 301',
    date: '2026-11-30',
    sources: ['distribution registry/api/v2/urls.go', 'jfrog/charts#1854'],
    mark: 'report',
    over: 'distribution-v3',
    changes: { upload: { location: 'httpScheme' }, proxy: { redirect301: true } },
  },
  {
    name: 'distribution-mirror',
    title: 'distribution as a pull-through mirror: whatever writes is 405',
    date: '2026-08-18',
    sources: ['distribution registry/proxy/proxyblobstore.go'],
    mark: 'source',
    over: 'distribution-v3',
    changes: { repo: { push: '405' } },
  },
  {
    name: 'harbor-proxy',
    title: 'a proxy project of Harbor: whatever writes is 403',
    date: '2026-08-21',
    sources: ['goharbor/harbor server/middleware/repoproxy/proxy.go'],
    mark: 'source',
    over: 'harbor',
    changes: { repo: { push: '403' } },
  },
  {
    name: 'nginx-1m',
    title: 'distribution behind nginx with its default body limit: 413 as a page',
    date: '2026-11-30',
    sources: ['nginx.org, client_max_body_size'],
    mark: 'document',
    over: 'distribution-v3',
    changes: { proxy: { maxBody: MIB } },
  },
  {
    name: 'cloudflare-100m',
    title: 'distribution behind Cloudflare: bodies over 100 MB are 413',
    date: '2026-11-30',
    sources: ['developers.cloudflare.com/workers/platform/limits'],
    mark: 'document',
    over: 'distribution-v3',
    changes: { proxy: { maxBody: 100_000_000 } },
  },
];
