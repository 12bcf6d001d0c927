/**
 * Pairs of os and architecture that somebody builds for: what `go tool dist list` of Go 1.26 names, and what docker's
 * own table had besides. Any other is taken as well; the user may know more than we do.
 *
 * @see https://github.com/docker/cli/blob/v28.2.2/cli/command/manifest/util.go
 */
const ARCHITECTURES: ReadonlyMap<string, string> = new Map([
  ['aix', 'ppc64'],
  ['android', '386 amd64 arm arm64'],
  ['darwin', '386 amd64 arm arm64'],
  ['dragonfly', 'amd64'],
  ['freebsd', '386 amd64 arm arm64 riscv64'],
  ['illumos', 'amd64'],
  ['ios', 'amd64 arm64'],
  ['js', 'wasm'],
  ['linux', '386 amd64 arm arm64 loong64 mips mipsle mips64 mips64le ppc64 ppc64le riscv64 s390x sparc64'],
  ['netbsd', '386 amd64 arm arm64'],
  ['openbsd', '386 amd64 arm arm64 ppc64 riscv64'],
  ['plan9', '386 amd64 arm'],
  ['solaris', 'amd64'],
  ['wasip1', 'wasm'],
  ['windows', '386 amd64 arm arm64'],
]);

/** Whether anybody is known to build for this pair. */
export function isKnownPair(os: string, architecture: string): boolean {
  return ARCHITECTURES.get(os)?.split(' ').includes(architecture) ?? false;
}
