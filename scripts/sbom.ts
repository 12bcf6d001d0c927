import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { env, stdout } from 'node:process';
import { bundledPackages } from './notices.ts';
import { ROOT } from './root.ts';

// Prints the bill of materials of the published package as SPDX 2.3 JSON. `npm sbom` cannot tell it: the package has no
// dependencies, since everything it uses is in its bundle. The time is SOURCE_DATE_EPOCH's, so that two builds of one
// commit give the same bytes.

type Manifest = { readonly name: string; readonly version: string; readonly license: string };

const { name, version, license } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as Manifest;
const created = new Date(Number(env['SOURCE_DATE_EPOCH'] ?? 0) * 1000).toISOString().replace('.000Z', 'Z');
const own = entry(name, version, license);
const parts = (await bundledPackages()).map((each) => entry(each.name, each.version, each.license));

const document = {
  spdxVersion: 'SPDX-2.3',
  dataLicense: 'CC0-1.0',
  SPDXID: 'SPDXRef-DOCUMENT',
  name: `${name}-${version}`,
  documentNamespace: `https://spdx.org/spdxdocs/${name}-${version}`,
  creationInfo: { created, creators: [`Tool: ${name}-sbom`] },
  packages: [own, ...parts],
  relationships: [
    { spdxElementId: 'SPDXRef-DOCUMENT', relationshipType: 'DESCRIBES', relatedSpdxElement: own.SPDXID },
    ...parts.map(({ SPDXID }) => ({
      spdxElementId: own.SPDXID,
      relationshipType: 'CONTAINS',
      relatedSpdxElement: SPDXID,
    })),
  ],
};
stdout.write(`${JSON.stringify(document, null, 2)}\n`);

function entry(packageName: string, packageVersion: string, packageLicense: string) {
  return {
    SPDXID: `SPDXRef-Package-${packageName.replaceAll(/[^A-Za-z0-9.-]/g, '-')}-${packageVersion}`,
    name: packageName,
    versionInfo: packageVersion,
    downloadLocation: 'NOASSERTION',
    filesAnalyzed: false,
    licenseConcluded: packageLicense,
    licenseDeclared: packageLicense,
    copyrightText: 'NOASSERTION',
    externalRefs: [
      {
        referenceCategory: 'PACKAGE-MANAGER',
        referenceType: 'purl',
        referenceLocator: `pkg:npm/${packageName.replace('@', '%40')}@${packageVersion}`,
      },
    ],
  };
}
