import type { Digest } from '../model/digest.ts';
import type { BlobIdentity } from '../registry/client.ts';
import type { PublishPorts } from './ports.ts';
import { createHabits } from './shared-habits.ts';
import { createSharedRead, PATIENCE, type Seat } from './shared-read.ts';
import { later } from './stop.ts';

/** Lets several target repositories (`members`) share one read of a blob that has to be streamed to all of them. */
export interface SharedReads {
  /** The member may need the blob's bytes. To be said of all members before any of them begins to place the blob. */
  expect(digest: Digest, member: string): void;
  /** It does not, or no more: the blob is there, mounted, or failed. Harmless when it was not expected. */
  leave(digest: Digest, member: string): void;
  /**
   * The member needs the bytes now. Waits for the others that are expected, one second at most, and gives it a seat;
   * undefined, at once or later, when it reads alone: nobody else needs them, it was not expected, or it has had its
   * seat.
   *
   * Nobody can hang here, as long as it is called without a place or a turn: who waits here holds nothing that others
   * wait for, and is not waited for itself, but for that second. Why nobody hangs later: @see createSharedRead
   * Who has missed the read it had a seat in is expected anew by that.
   */
  join(blob: BlobIdentity, member: string, signal: AbortSignal): Promise<Seat | undefined> | undefined;
}

type Waiting = { readonly member: string; readonly seated: (seat: Seat | undefined) => void };

/** Those who wait for others to come. */
type Gathering = { readonly blob: BlobIdentity; readonly waiting: Set<Waiting>; readonly stop: () => void };

type Topic = {
  readonly expected: Set<string>;
  gathering?: Gathering | undefined;
  /** When members last got their seats, by the clock. */
  seatedAt?: number;
};

/** One for a run. */
export function createSharedReads(ports: PublishPorts): SharedReads {
  const { clock } = ports;
  const habits = createHabits();
  const topics = new Map<Digest, Topic>();

  /** A topic is kept for as long as somebody may come to it: of the blobs of a thousand lists most are done with. */
  function tidy(digest: Digest, topic: Topic): void {
    const isOpen = topic.expected.size > 0 || topic.gathering !== undefined;
    if (!isOpen && topics.get(digest) === topic) topics.delete(digest);
  }

  function isAwaited(member: string): boolean {
    return habits.coming.isAwaited(member) && !habits.isStraggling(member);
  }

  function gather(topic: Topic, blob: BlobIdentity): Gathering {
    const stop = later(clock, PATIENCE, () => {
      for (const member of topic.expected) habits.coming.inVain(member);
      seat(topic, gathering);
    });
    const gathering = { blob, waiting: new Set<Waiting>(), stop };
    topic.gathering = gathering;
    return gathering;
  }

  function seatIfComplete(topic: Topic): void {
    if (topic.gathering === undefined || [...topic.expected].some(isAwaited)) return;
    seat(topic, topic.gathering);
  }

  function seat(topic: Topic, { blob, waiting, stop }: Gathering): void {
    stop();
    topic.gathering = undefined;
    topic.seatedAt = clock.now();
    const names = [...waiting].map(({ member }) => member);
    for (const name of names) habits.coming.inTime(name);
    const again = (name: string): void => {
      const open = topics.get(blob.digest) ?? topic;
      topics.set(blob.digest, open);
      open.expected.add(name);
    };
    const seats = names.length > 1 ? createSharedRead(blob, names, ports, habits, again) : [];
    for (const [index, { seated }] of [...waiting].entries()) seated(seats[index]);
  }

  /** It has come, though others may be seated: if they would not have had to wait for long, it is worth it next time. */
  function noteArrival({ seatedAt }: Topic, member: string): void {
    if (seatedAt !== undefined && clock.now() - seatedAt < PATIENCE) habits.coming.inTime(member);
  }

  return {
    expect: (digest, member) => {
      const topic = topics.get(digest) ?? { expected: new Set() };
      topics.set(digest, topic);
      topic.expected.add(member);
    },
    leave: (digest, member) => {
      const topic = topics.get(digest);
      if (topic === undefined) return;
      if (topic.expected.delete(member)) {
        noteArrival(topic, member);
        seatIfComplete(topic);
      }
      tidy(digest, topic);
    },
    join: (blob, member, signal) => {
      const topic = topics.get(blob.digest);
      if (topic?.expected.delete(member) !== true) return undefined;
      if (signal.aborted) {
        seatIfComplete(topic);
        return Promise.reject(signal.reason);
      }
      noteArrival(topic, member);
      if (habits.isStraggling(member)) {
        seatIfComplete(topic);
        return undefined;
      }
      if (topic.gathering === undefined && ![...topic.expected].some(isAwaited)) {
        topic.seatedAt = clock.now();
        return undefined;
      }
      const { waiting } = topic.gathering ?? gather(topic, blob);
      return new Promise((resolve, reject) => {
        const one: Waiting = {
          member,
          seated: (seat) => {
            signal.removeEventListener('abort', abort);
            resolve(seat);
          },
        };
        const abort = (): void => {
          waiting.delete(one);
          reject(signal.reason);
        };
        signal.addEventListener('abort', abort, { once: true });
        waiting.add(one);
        seatIfComplete(topic);
      });
    },
  };
}
