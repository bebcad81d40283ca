// Says when a request of an open loop is due. It is a thread that sleeps in Atomics.wait and wakes within about 0.1 ms.
// Node's timers fire half a millisecond late on average and up to two, which would count as latency of the service.
import { once } from "node:events";
import { parentPort, Worker, workerData } from "node:worker_threads";
import { waitFor } from "../../support/wait-until.ts";

type Pace = { startAt: number; everyMs: number; count: number };

const role = "pacer";

/** Milliseconds on a clock that all threads share. */
export const sharedNow = (): number => Number(process.hrtime.bigint()) / 1e6;

export async function openPacer(perSecond: number, count: number) {
  const thread = new Worker(new URL(import.meta.url), { workerData: role });
  const everyMs = 1_000 / perSecond;
  const waiting = new Map<number, () => void>();
  let [startAt, reached] = [0, -1];
  thread.on("message", (number: number) => {
    reached = number;
    waiting.get(number)?.();
    waiting.delete(number);
  });
  await waitFor("the thread of the pacer", once(thread, "online"));
  return {
    start() {
      startAt = sharedNow();
      thread.postMessage({ startAt, everyMs, count } satisfies Pace);
    },
    /** Resolves when this request is due, with the time at which it was. */
    async whenDue(number: number): Promise<number> {
      if (number > reached) await new Promise<void>((resolve) => waiting.set(number, resolve));
      return startAt + number * everyMs;
    },
    end: () => thread.terminate(),
  };
}

if (workerData === role) {
  const cell = new Int32Array(new SharedArrayBuffer(4));
  parentPort!.on("message", ({ startAt, everyMs, count }: Pace) => {
    for (let number = 0; number < count; number += 1) {
      const dueAt = startAt + number * everyMs;
      while (sharedNow() < dueAt) Atomics.wait(cell, 0, 0, dueAt - sharedNow());
      parentPort!.postMessage(number);
    }
  });
}
