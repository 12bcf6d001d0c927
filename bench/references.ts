import type { Task } from './peers.ts';
import type { SeededImage } from './seed.ts';

/** Where the list shall be, as a user types it. */
export function target(task: Task): string {
  return `${task.host}/${task.repository}:${task.tag}`;
}

/** Where an image is, as a user types it. */
export function source(task: Task, image: SeededImage): string {
  return `${task.host}/${image.repository}:${task.tag}`;
}

export function sources(task: Task): readonly string[] {
  return task.images.map((image) => source(task, image));
}
