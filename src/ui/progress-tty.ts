import type { PublishEvent } from '../publish/events.ts';
import { easelOn } from './easel.ts';
import { resolveLine, runningLines, titles } from './progress-lines.ts';
import { renderWarnings } from './render-error.ts';
import type { Tally, TrafficEvent } from './tally.ts';
import { paint, symbols, type Theme, type ThemedStream } from './theme.ts';

/** Calls `tick` every so many milliseconds until the returned function is called; must not keep the process alive. */
export type Every = (milliseconds: number, tick: () => void) => () => void;

/** Where progress goes to; `event` comes after the tally has it. */
export type Sink = {
  event(event: PublishEvent): void;
  http(event: TrafficEvent): void;
  stop(): Promise<void>;
};

/** What drawing needs. */
export type Canvas = {
  readonly stream: NodeJS.WriteStream;
  readonly theme: Theme;
  readonly tally: Tally;
  readonly now: () => number;
  readonly every: Every;
};

/** One kind of drawing on the terminal; `close` leaves nothing of it. */
type View = { readonly name: 'resolve' | 'work'; draw(): void; close(): Promise<void> };

const FRAME_MS = 100;
/** A run that is done sooner draws nothing, and the libraries that draw are not loaded beside its first requests. */
const PATIENCE_MS = 300;

/** Whether the stream is a terminal that can be drawn on; one without a size (serial lines, some CI) cannot. */
export function isTerminal(stream: ThemedStream): stream is NodeJS.WriteStream {
  return stream.isTTY === true && (stream.columns ?? 0) > 0;
}

/**
 * Draws the tally ten times a second: a spinner while sources are read, then the counts with the blobs that move.
 * Warnings are shown in the drawing and written in full when it is gone. A drawing that fails is given up, not the run.
 */
export function drawOn(canvas: Canvas): Sink {
  const { stream, theme, tally, now, every } = canvas;
  let began: number | undefined;
  let view: View | undefined;
  let turn: Promise<void> | undefined;
  let trouble: string | undefined;

  const giveUp = (error: unknown) => {
    trouble ??= `progress is not drawn: ${String(error)}`;
  };
  const draw = async () => {
    const wanted = tally.plans === 0 ? 'resolve' : 'work';
    if (view?.name === wanted) return view.draw();
    await view?.close();
    view = undefined;
    view = wanted === 'resolve' ? await openSpinner(canvas) : await openTasks(canvas);
    view.draw();
  };
  const end = every(FRAME_MS, () => {
    if (began === undefined || now() - began < PATIENCE_MS || turn !== undefined || trouble !== undefined) return;
    turn = draw()
      .catch(giveUp)
      .finally(() => {
        turn = undefined;
      });
  });
  return {
    event() {
      began ??= now();
    },
    http: () => undefined,
    async stop() {
      end();
      await turn;
      await view?.close().catch(giveUp);
      view = undefined;
      const warnings = [...tally.warnings.splice(0), ...(trouble === undefined ? [] : [trouble])];
      trouble = undefined;
      const text = renderWarnings(warnings, theme);
      if (text !== '') stream.write(text);
    },
  };
}

/**
 * ora as a painter of one line. It is never started: that would set a timer that keeps the process alive, hide the
 * cursor, put stdin into raw mode and replace the `write` of stdout.
 */
async function openSpinner({ stream, theme, tally, now }: Canvas): Promise<View> {
  const { default: ora } = await import('ora');
  const spinner = ora({
    stream,
    isEnabled: true,
    hideCursor: false,
    color: false,
    spinner: { frames: symbols(theme).frames.map((frame) => paint(theme, 'warn', frame)), interval: FRAME_MS },
  });
  return {
    name: 'resolve',
    draw() {
      spinner.text = resolveLine(tally, now(), narrower(theme, stream, 3));
      spinner.render();
    },
    async close() {
      spinner.stop();
    },
  };
}

/**
 * listr2 with three tasks that run until the drawing is closed. It lays out and the easel writes: its own writer hides
 * the cursor, asks stdout for the width, withholds what others write on stderr (lost when the process ends) and brings
 * handlers of signals that end the process before a run has cleaned up (log-update: restore-cursor, signal-exit).
 */
async function openTasks({ stream, theme, tally, now }: Canvas): Promise<View> {
  const { DefaultRenderer, Listr, ListrLogger, ProcessOutput, Spinner } = await import('listr2');

  class Frames extends Spinner {
    protected override readonly spinner = [...symbols(theme).frames];
  }

  class OnStderr extends DefaultRenderer {
    /** listr2 asks stdout whether there is a terminal; ours is stderr, whatever stdout is. */
    static override nonTTY = true;
    override async render(): Promise<void> {
      redraw = () => easel.draw(this.create().split('\n'));
    }
    override end(): void {
      redraw = () => undefined;
    }
    protected override format(message: string, icon: string, level: number): string[] {
      const lead = '  '.repeat(level) + (icon ? `${icon} ` : '');
      return message === '' ? [] : message.split('\n').map((line) => lead + line);
    }
  }

  const easel = easelOn(stream);
  const spinner = new Frames();
  const updates: (() => void)[] = [];
  const { promise: closed, resolve: close } = deferred();
  let redraw: () => void = () => undefined;
  const taskOf = (at: 0 | 1 | 2) => ({
    title: ' ',
    task: (_: unknown, task: { title: string; output: string }) => {
      updates.push(() => {
        const width = narrower(theme, stream, 2);
        task.title = titles(tally, width)[at];
        if (at === 0) task.output = runningLines(tally, now(), width).join('\n');
      });
      return closed;
    },
  });
  const list = new Listr([taskOf(0), taskOf(1), taskOf(2)], {
    concurrent: true,
    exitOnError: false,
    // Its handler of SIGINT would end the process with 127 before the run has cancelled its sessions.
    registerSignalListeners: false,
    renderer: OnStderr,
    rendererOptions: {
      logger: new ListrLogger({ processOutput: new ProcessOutput(stream, stream) }),
      spinner,
      icon: { OUTPUT: '' },
      color: { PENDING: (text) => paint(theme, 'warn', text ?? '') },
    },
  });
  const run = list.run();
  return {
    name: 'work',
    draw() {
      for (const update of updates) update();
      spinner.spin();
      redraw();
    },
    async close() {
      close();
      await run;
      easel.draw([]);
    },
  };
}

/** The terminal as wide as it is now, less what stands before a line. */
function narrower(theme: Theme, stream: NodeJS.WriteStream, columns: number): Theme {
  return { ...theme, width: Math.min(theme.width, stream.columns) - columns };
}

function deferred(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve: () => void = () => undefined;
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
