// Calls a function repeatedly: `everyMs` after the last call ended, or at once after wake(). Two calls never overlap.
// Logs the first of several failures, and the recovery: a database outage of an hour writes two lines.
// A ticker is always in one of these modes:
//
//   waiting  the timer is set. wake() starts a call now, unless the last call failed.
//   running  a call is running. wake() makes the next call follow at once, unless this one fails.
//   stopped  stop() was called. It waits for the running call; no other call starts.
import type { Logger } from "../common/log.ts";

export type Ticker = { wake(): void; stop(): Promise<void> };
type Parts = { name: string; everyMs: number | (() => number); tick: () => Promise<unknown>; log: Logger };

export function startTicker({ name, everyMs, tick, log }: Parts): Ticker {
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  let isWoken = false;
  let isStopped = false;
  let isFailing = false;

  async function run(): Promise<void> {
    isWoken = false;
    try {
      await tick();
      if (isFailing) log.info({ ticker: name }, "the ticker works again");
      isFailing = false;
    } catch (error) {
      if (!isFailing && !isStopped) log.warn({ ticker: name, err: error }, "the ticker failed; it keeps trying");
      isFailing = true;
    }
    running = undefined;
    // After a failure, wake() does not shorten the pause.
    schedule(isWoken && !isFailing ? 0 : typeof everyMs === "number" ? everyMs : everyMs());
  }

  function schedule(delayMs: number): void {
    if (isStopped) return;
    timer = setTimeout(start, delayMs);
  }

  function start(): void {
    clearTimeout(timer);
    running = run();
  }

  start();
  return {
    wake() {
      if (isStopped) return;
      if (running === undefined && !isFailing) start();
      else isWoken = true;
    },
    async stop() {
      isStopped = true;
      clearTimeout(timer);
      await running;
    },
  };
}
