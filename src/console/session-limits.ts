// What a member of staff, or a company with all its sessions, may ask for: pages beside each other, pages in a second,
// and searches, because each search may try a code.
import { HTTPError } from "h3";
import { createBuckets } from "../http/token-bucket.ts";

const mostAtOnce = 10;
const pages = { perSecond: 10, burst: 300 };
const searches = { perSecond: 0.5, burst: 30 };

export function createSessionLimits() {
  const [ofPages, ofSearches] = [createBuckets(pages), createBuckets(searches)];
  const running = new Map<string, number>();

  return {
    async run<Answer>(name: string, work: () => Promise<Answer>): Promise<Answer> {
      const count = running.get(name) ?? 0;
      if (count >= mostAtOnce || ofPages.left(name) < 1) throw new HTTPError({ status: 429 });
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
