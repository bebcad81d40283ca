// Calls a function over and over: every `everyMs` after its last end, or at once after wake(). Never twice at the
// same time. A failure is logged once, and once more when it is over: a database that is away for an hour
// writes two lines.
import type { Logger } from "../common/log.ts";

export type Ticker = { wake(): void; stop(): Promise<void> };

export function startTicker({
  name,
  everyMs,
  tick,
  log,
}: {
  name: string;
  everyMs: number | (() => number);
  tick: () => Promise<unknown>;
  log: Logger;
}): Ticker {
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  let isWoken = false;
  let isStopped = false;
  let isFailing = false;

  async function run(): Promise<void> {
    isWoken = false;
    try {
      await tick();
      if (isFailing) log.info({ ticker: name }, "ticker works again");
      isFailing = false;
    } catch (error) {
      if (!isFailing && !isStopped) log.warn({ ticker: name, err: error }, "ticker failed, trying on");
      isFailing = true;
    }
    running = undefined;
    // A failing tick is not called again at once, however often it is woken.
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
