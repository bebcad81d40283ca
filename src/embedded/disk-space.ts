// Whether the disk of the embedded server has space. PostgreSQL ends if it cannot write its log, and needs space to
// recover.
import { statfsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** Two segments of the write-ahead log: recovery after a crash needs one, and new calls soon need the next. */
const spaceBytes = 2 * 16 * 2 ** 20;
const lookEveryMs = 200;

export function hasSpace(folder: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize >= spaceBytes;
  } catch {
    // The free space cannot be read, so the disk is not known to be full.
    return true;
  }
}

/** Waits for `ms`. On a full disk, it returns as soon as there is space. */
export async function waitForSpace(folder: string, ms: number, isOver: () => boolean): Promise<void> {
  const wasFull = !hasSpace(folder);
  const endAt = performance.now() + ms;
  while (performance.now() < endAt && !isOver() && !(wasFull && hasSpace(folder))) await sleep(lookEveryMs);
}

export const describeFullDisk = (folder: string): string => `the disk of ${folder} is full`;
