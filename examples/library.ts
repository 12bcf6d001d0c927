// Publishes one reference from images that other jobs have built, looks at the plan first, shows what happens, and
// downloads and checks the result:
//
//   node library.js TARGET SOURCE...
//
// Credentials are those of docker login. Compile it with any TypeScript; it needs manifest-publish and @types/node.

import process, { argv, stderr, stdout } from 'node:process';
import { inspect, PublishError, type PublishEvent, planPublish, publish, verify } from 'manifest-publish';

/** What must be in the index: a build that did not push must not go unnoticed. */
const EXPECTED = (process.env['EXPECT_PLATFORMS'] ?? '').split(',').filter((platform) => platform !== '');

const [target = '', ...sources] = argv.slice(2);
const options = { target, sources, ...(EXPECTED.length > 0 ? { expectPlatforms: EXPECTED } : {}) };

/** Ctrl-C ends the run as it does on the command line: sessions are cancelled, no tag is moved. */
const controller = new AbortController();
process.once('SIGINT', () => controller.abort(new Error('interrupted')));

function onEvent(event: PublishEvent): void {
  if (event.kind === 'blob.done') stderr.write(`${event.how} ${event.digest}\n`);
  if (event.kind === 'tag.done') stderr.write(`${event.action} ${event.reference}\n`);
}

try {
  // Reads and plans; nothing is mounted, sent or written.
  const plan = await planPublish(options);
  for (const { source, digest } of plan.lists.flatMap(({ images }) => images)) stderr.write(`${source} ${digest}\n`);

  const run = { signal: controller.signal, onEvent, network: { timeout: 600_000 } };
  const report = await publish(options, run);
  const { blobs, bytesSent, bytesSaved } = report.totals;
  stderr.write(`mounted ${blobs.mounted}, copied ${blobs.copied}; sent ${bytesSent} bytes, saved ${bytesSaved}\n`);

  // What a client will see: the index behind the tag, and every blob it reaches.
  const { digest, children = [] } = await inspect(target, { tree: true });
  const { problems } = await verify(target, { deep: true });
  for (const { digest: at, what } of problems) stderr.write(`${at}: ${what}\n`);
  if (problems.length > 0) process.exitCode = 6;

  stdout.write(`${digest} ${children.length}\n`);
} catch (error) {
  // Everything that the user can act on has a stable code, the exit code of the command line, and a hint.
  if (!(error instanceof PublishError)) throw error;
  stderr.write(`${error.code}: ${error.message}\n${error.hint}\n`);
  process.exitCode = error.exitCode;
}
