// What a member of staff, or a company with all its sessions, may ask for: pages beside each other, pages in a second,
// and searches, because each search may try a code.
import { HTTPError } from "h3";
import { createBuckets } from "../http/token-bucket.ts";
import type { Session } from "./sessions.ts";

const mostAtOnce = 10;
const pages = { perSecond: 10, burst: 300 };
const searches = { perSecond: 0.5, burst: 30 };
/** Whoever asked for too much is refused that long without a look into the database. */
const refusedMs = 500;
const mostRefused = 1_000;

export function createSessionLimits() {
  const [ofPages, ofSearches] = [createBuckets(pages), createBuckets(searches)];
  const running = new Map<string, number>();
  const refusedUntil = new Map<string, number>();

  function refuse(token: string): never {
    if (refusedUntil.size >= mostRefused) refusedUntil.clear();
    refusedUntil.set(token, performance.now() + refusedMs);
    throw new HTTPError({ status: 429 });
  }

  return {
    /** Before the session of a token is looked up. */
    refuseAgain(token: string): void {
      const until = refusedUntil.get(token);
      if (until === undefined) return;
      if (performance.now() < until) throw new HTTPError({ status: 429 });
      refusedUntil.delete(token);
    },
    async run<Answer>({ name, token }: Session, work: () => Promise<Answer>): Promise<Answer> {
      const count = running.get(name) ?? 0;
      if (count >= mostAtOnce || ofPages.left(name) < 1) refuse(token);
      ofPages.take(name);
      running.set(name, count + 1);
      try {
        return await work();
      } finally {
        const left = running.get(name)! - 1;
        if (left === 0) running.delete(name);
        else running.set(name, left);
      }
    },
    countSearch(name: string): void {
      if (ofSearches.left(name) < 1) throw new HTTPError({ status: 429 });
      ofSearches.take(name);
    },
  };
}
