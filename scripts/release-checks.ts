/** What a release is made from; the version of all is that of package.json. */
export type ReleaseFiles = {
  /** The tag that is pushed, `v1.2.3`. */
  readonly tag: string;
  readonly packageJson: string;
  readonly packageLock: string;
  readonly commandManifest: string;
  readonly changelog: string;
};

/** Everything that speaks against a release, in words; nothing when it may be made. */
export function releaseFaults(files: ReleaseFiles): readonly string[] {
  const version = versionOf(files.packageJson);
  const faults = [
    files.tag === `v${version}` ? undefined : `the tag ${files.tag} is not v${version}, the version in package.json`,
    // npm would refuse it without a tag of its own, and only after everything else has been made and attested.
    /^\d+\.\d+\.\d+$/.test(version) ? undefined : `${version} is a pre-release: npm would have to be told a tag for it`,
    versionOf(files.packageLock) === version ? undefined : 'package-lock.json has another version: run npm install',
    versionOf(files.commandManifest) === version
      ? undefined
      : 'oclif.manifest.json has another version: run npm run generate',
    releaseNotes(files.changelog, version) === undefined
      ? `CHANGELOG.md has nothing under a heading "## ${version}"`
      : undefined,
    // An address there is that of a mirror of whoever ran npm install; npm finds packages without it.
    files.packageLock.includes('"resolved"') ? 'package-lock.json names download addresses' : undefined,
  ];
  return faults.filter((fault) => fault !== undefined);
}

/** The text of CHANGELOG.md below the heading of that version; undefined when there is none. */
export function releaseNotes(changelog: string, version: string): string | undefined {
  const sections = changelog.split(/^## /m).slice(1);
  const section = sections.find((text) => text.split(/\s/, 1)[0] === version);
  const notes = section?.slice(section.indexOf('\n')).trim();
  return notes === '' ? undefined : notes;
}

function versionOf(json: string): string {
  return (JSON.parse(json) as { readonly version: string }).version;
}
