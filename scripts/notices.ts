import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { OutputChunk } from 'rolldown';
import { bundleAction } from './action-bundle.ts';
import { bundle } from './bundle.ts';

/** A package of others that has a module in the bundle. */
export type Package = {
  readonly name: string;
  readonly version: string;
  readonly license: string;
  readonly text: string;
};

const HEAD = `The program in lib/ and the action in dist/ contain the following packages. Each is used under its own licence, which is given below.
`;

/** The licences of every package that has a module in one of the bundles. */
export async function thirdPartyNotices(): Promise<string> {
  const sections = (await packagesOf([...(await bundle()), await bundleAction()])).map(
    ({ name, version, license, text }) => `${'-'.repeat(80)}\n${name} ${version} (${license})\n\n${text}\n`,
  );
  return `${HEAD}\n${sections.join('\n')}`;
}

/** What the program is made of besides our own modules, by name; two versions of a package can be in it. */
export async function bundledPackages(): Promise<readonly Package[]> {
  return packagesOf(await bundle());
}

async function packagesOf(chunks: readonly OutputChunk[]): Promise<readonly Package[]> {
  const folders = new Set(chunks.flatMap((chunk) => chunk.moduleIds).flatMap(packageFolder));
  const packages = await Promise.all([...folders].map(readPackage));
  const byName = new Map(packages.map((each) => [`${each.name} ${each.version}`, each]));
  return [...byName.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, each]) => each);
}

/** Up to the last `node_modules/NAME` or `node_modules/@SCOPE/NAME`; none for our own and virtual modules. */
function packageFolder(module: string): string[] {
  const match = /^[^\0]*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+/.exec(module);
  return match === null ? [] : [match[0]];
}

async function readPackage(folder: string): Promise<Package> {
  const { name, version, license } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as Package;
  const files = (await readdir(folder)).filter((file) => /^(?:licen[cs]e|copying)/i.test(file)).sort();
  if (typeof license !== 'string') throw new Error(`${name} names no licence`);
  const texts = await Promise.all(files.map((file) => readFile(join(folder, file), 'utf8')));
  const text = texts.map((each) => each.replaceAll('\r\n', '\n').trim()).join('\n\n');
  return { name, version, license, text: text === '' ? `No licence file; package.json says ${license}.` : text };
}
