// A registry to copy from and three to copy to, in a process of their own: `node scripts/run-ts.js` this, with the sizes
// of layers in bytes. Layers are made at every read, and hashed and counted where they arrive: nothing is stored. It
// tells of every read of a blob when that has ended.
import { writeSync } from 'node:fs';
import { argv } from 'node:process';
import { makeImage, putBuilt, startRegistry } from '../../src/registry-server/index.ts';

const PLATFORM = { architecture: 'amd64', os: 'linux' };

const source = await startRegistry({
  onEntry: ({ operation, reference, bytesOut }) => {
    if (operation === 'blobGet') writeSync(1, `read ${reference} ${bytesOut}\n`);
  },
});
const targets = await Promise.all([1, 2, 3].map(() => startRegistry({ keepUpTo: 1024 * 1024 })));
for (const size of argv.slice(2).map(Number)) {
  const image = makeImage(`layer of ${size}`, { platform: PLATFORM, layers: 1, layerBytes: size });
  putBuilt(source, `big/of${size}`, image, 'one');
}
writeSync(1, `ready ${[source, ...targets].map(({ host }) => host).join(' ')}\n`);
