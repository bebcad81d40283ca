// Several connections as one database. Each is a driver of its own, because a driver's pool takes turns among its connections: every
// server process then finds its plans and catalog cold, and each call takes a tenth longer. Here the one that was given
// back last is taken next, and one that was lost is taken last. More statements at once than connections wait for their turn.
import type { Database } from "./types.ts";

type Place = { database: Database; isLost: boolean };

export type PoolParts = {
  max: number;
  // Connects when it is first used, and again after it was lost; `onLost` is called when it is.
  open: (onLost: () => void) => Database;
  // Whether a connection went away under a statement, so that its driver is not to be used again.
  isSpent: (error: unknown) => boolean;
};

export function createPool({ max, open, isSpent }: PoolParts): Database {
  const places = Array.from({ length: max }, () => openAt({ isLost: false } as Place));
  const idle = [...places];
  const waiting: PromiseWithResolvers<Place>[] = [];
  let isEnded = false;

  function openAt(place: Place): Place {
    place.database = open(() => noteLost(place));
    return place;
  }

  function noteLost(place: Place): void {
    place.isLost = true;
    const at = idle.indexOf(place);
    if (at > 0) idle.unshift(...idle.splice(at, 1));
  }

  function turn(): Promise<Place> {
    const one = Promise.withResolvers<Place>();
    waiting.push(one);
    return one.promise;
  }

  function noteFailed(place: Place, error: unknown): void {
    if (isEnded || !isSpent(error)) return;
    void place.database.end();
    openAt(place);
  }

  function giveBack(place: Place): void {
    const next = waiting.shift();
    if (next !== undefined) next.resolve(place);
    else if (place.isLost) idle.unshift(place);
    else idle.push(place);
  }

  return {
    async rows<T>(text: string, params?: readonly unknown[]) {
      const place = idle.pop() ?? (await turn());
      try {
        const rows = await place.database.rows<T>(text, params);
        place.isLost = false;
        return rows;
      } catch (error) {
        noteFailed(place, error);
        throw error;
      } finally {
        giveBack(place);
      }
    },
    async *blocks<T>(text: string, params: readonly unknown[], size: number) {
      const place = idle.pop() ?? (await turn());
      try {
        yield* place.database.blocks<T>(text, params, size);
        place.isLost = false;
      } catch (error) {
        noteFailed(place, error);
        throw error;
      } finally {
        giveBack(place);
      }
    },
    async end() {
      isEnded = true;
      for (const one of waiting.splice(0))
        one.reject(Object.assign(new Error("the connections have ended"), { code: "CONNECTION_ENDED" }));
      await Promise.all(places.map(({ database }) => database.end()));
    },
  };
}
