import type { MountCheck } from './mount-check-report.ts';

/** Services that have names of their own. Whatever else answers there was put there by the same people. */
const HOSTS: readonly (readonly [RegExp, string])[] = [
  [/^\d{12}\.dkr[.-]ecr(?:-fips)?\.[a-z0-9.-]+$/, 'Amazon ECR'],
  [/^public\.ecr\.aws$/, 'Amazon ECR Public'],
  [/^docker\.io$/, 'Docker Hub'],
  [/^ghcr\.io$/, 'GitHub Container Registry'],
  [/\.pkg\.dev$/, 'Google Artifact Registry'],
  [/(?:^|\.)gcr\.io$/, 'Google Container Registry'],
  [/\.azurecr\.(?:io|cn|us)$/, 'Azure Container Registry'],
  [/^quay\.io$/, 'Quay'],
  [/^registry\.gitlab\.com$/, 'GitLab'],
  [/^registry\.digitalocean\.com$/, 'DigitalOcean'],
  [/\.jfrog\.io$/, 'JFrog Artifactory'],
];

/** Headers that one product alone sends. */
const HEADERS: readonly (readonly [name: string, value: RegExp, kind: string])[] = [
  ['x-jfrog-version', /./, 'JFrog Artifactory'],
  ['x-artifactory-id', /./, 'JFrog Artifactory'],
  ['x-sparse-manifest-support', /./, 'Quay'],
  ['server', /^nexus\b/i, 'Sonatype Nexus'],
];

/** Which registry it is, as far as its name and its answers tell: what is not seen is not guessed. */
export function registryOf(host: string, seen: ReadonlyMap<string, string>): MountCheck['registry'] {
  const name = host.replace(/:\d+$/, '');
  const kind =
    HOSTS.find(([pattern]) => pattern.test(name))?.[1] ??
    HEADERS.find(([header, value]) => value.test(seen.get(header) ?? ''))?.[2];
  const signs = [...seen].map(([header, value]) => `${titled(header)}: ${value}`).sort();
  return { ...(kind === undefined ? {} : { kind }), signs: [`host name: ${host}`, ...signs] };
}

const ABBREVIATIONS: Readonly<Record<string, string>> = { oci: 'OCI', github: 'GitHub', jfrog: 'JFrog', cf: 'CF' };

/** Header names as they are written in specifications. */
function titled(header: string): string {
  return header
    .split('-')
    .map((word) => ABBREVIATIONS[word] ?? word.charAt(0).toUpperCase() + word.slice(1))
    .join('-');
}
