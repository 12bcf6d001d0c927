import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { createProgress } from '../../src/ui/progress.ts';
import { themeFor } from '../../src/ui/render.ts';
import { digest } from './samples.ts';
import { REST, RETRY, STORY } from './story.ts';

/** Runs a story with progress on its own stderr, as its argument says; the result goes to stdout. */
const [how = 'whole', ascii = ''] = process.argv.slice(2);
const progress = createProgress({
  mode: 'auto',
  stream: process.stderr,
  theme: themeFor(process.stderr, { noColor: false, unicode: ascii === '' }),
  ci: false,
  quiet: false,
  debug: false,
  now: () => performance.now(),
  every(milliseconds, tick) {
    const timer = setInterval(tick, milliseconds).unref();
    return () => clearInterval(timer);
  },
});
const mark = (name: string) => process.stderr.write(`\u001b[0m<${name}>`);

if (how === 'interrupted') {
  process.once('SIGINT', () => {
    progress.stop().then(() => {
      process.stderr.write('error: interrupted\n');
      process.exitCode = 130;
    });
  });
}

for (const event of STORY.slice(0, 2)) progress.emit(event);
if (how !== 'quick') await sleep(700);
if (how === 'left') process.exitCode = 7;
else {
  mark('resolving');
  for (const event of STORY.slice(2)) progress.emit(event);
  progress.http(RETRY);
  if (how !== 'quick') await sleep(900);
  mark('working');
  if (how === 'crash') throw new Error('a bug');
  if (how === 'interrupted') {
    process.kill(process.pid, 'SIGINT');
    // The signal is told in a later turn of the loop; a run has sockets that wait for it.
    await sleep(200);
  } else {
    for (const event of REST) progress.emit(event);
    if (how !== 'quick') await sleep(300);
    mark('ending');
    await progress.stop();
    process.stderr.write('summary\n');
    process.stdout.write(`${digest('index')}\n`);
  }
}
