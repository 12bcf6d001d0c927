/**
 * The name that docker gives the folder of a list and the file of an entry. Several references may share one:
 * `q:x-1` and `q-x:1`. Docker sorts a list by these names.
 *
 * @see https://github.com/docker/cli/blob/v28.2.2/cli/manifest/store/store.go makeFilesafeName
 */
export function dockerFileName(reference: string): string {
  return reference.replaceAll(':', '-').replaceAll('/', '_');
}

/** Docker's order of entries: that of its file names, byte by byte. References are ASCII. */
export function byDockerName(one: string, other: string): number {
  const [first, second] = [dockerFileName(one), dockerFileName(other)];
  if (first !== second) return first < second ? -1 : 1;
  return one < other ? -1 : Number(one > other);
}
