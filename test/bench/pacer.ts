// Ticks whenever a request of an open loop is due. It is a thread that sleeps in Atomics.wait and wakes within about
// 0.1 ms. Node's timers fire half a millisecond late on average and up to two, which would count as latency of the
// service.
import { once } from "node:events";
import { isMainThread, parentPort, Worker } from "node:worker_threads";
import { waitFor } from "../support/wait-until.ts";

// Milliseconds on a clock that all threads share.
export const sharedNow = (): number => Number(process.hrtime.bigint()) / 1e6;

type Pace = { startAt: number; everyMs: number; count: number };
export type Pacer = { start(pace: Pace, tick: () => void): void; end(): Promise<void> };

export async function openPacer(): Promise<Pacer> {
  const thread = new Worker(new URL(import.meta.url));
  await waitFor("the thread of the pacer", once(thread, "online"));
  return {
    start(pace, tick) {
      thread.on("message", tick);
      thread.postMessage(pace);
    },
    async end() {
      await thread.terminate();
    },
  };
}

if (!isMainThread) {
  const cell = new Int32Array(new SharedArrayBuffer(4));
  parentPort!.on("message", ({ startAt, everyMs, count }: Pace) => {
    for (let number = 0; number < count; number += 1) {
      const dueAt = startAt + number * everyMs;
      while (sharedNow() < dueAt) Atomics.wait(cell, 0, 0, dueAt - sharedNow());
      parentPort!.postMessage(null);
    }
  });
}
