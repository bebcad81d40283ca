// A pool of connections. The driver's own pool rotates through its connections, so the plans and catalog caches of each
// server process drop out of the CPU's cache, and each call takes 10 % longer. This pool reuses the connection that was
// returned last, and takes a lost connection only when no other is idle. When all are busy, statements wait in a queue.
import type { Database } from "./types.ts";

// pipe: of the statements that it runs now.
type Slot = { database: Database; isLost: boolean; running: number; pipe: object | undefined };

type Parts = {
  max: number;
  /** Returns a connection that opens at its first use and again after a loss. It calls `onLost` when it is lost. */
  open: (onLost: () => void) => Database;
  /** Whether a statement failed because its connection was lost. Its driver is then replaced. */
  isSpent: (error: unknown) => boolean;
  /** Whether a statement failed because it was prepared before its objects changed. It has had no effect. */
  isOutdated: (error: unknown) => boolean;
};

export function createPool(parts: Parts): Database {
  const slots = createSlots(parts);
  return {
    async rows<T>(text: string, params?: readonly unknown[], pipe?: object) {
      const slot = slots.ofPipe(pipe) ?? slots.take() ?? (await slots.wait());
      slot.running += 1;
      slot.pipe = pipe;
      const run = () => slots.run(slot, (database) => database.rows<T>(text, params, pipe));
      try {
        return await run();
      } catch (error) {
        if (!parts.isOutdated(error)) throw error;
        return await run();
      } finally {
        slots.release(slot);
      }
    },
    end: slots.end,
  };
}

// A slot is idle or busy. `waiting` holds statements only while no slot is idle.
function createSlots({ max, open, isSpent, isOutdated }: Parts) {
  const slots = Array.from({ length: max }, () => openIn({ isLost: false, running: 0 } as Slot));
  const idle = [...slots];
  const waiting: PromiseWithResolvers<Slot>[] = [];
  let isEnded = false;

  function openIn(slot: Slot): Slot {
    slot.database = open(() => markLost(slot));
    return slot;
  }

  function markLost(slot: Slot): void {
    slot.isLost = true;
    const at = idle.indexOf(slot);
    if (at > 0) idle.unshift(...idle.splice(at, 1));
  }

  return {
    ofPipe: (pipe?: object) => pipe && slots.find((slot) => slot.running > 0 && slot.pipe === pipe),
    take: (): Slot | undefined => idle.pop(),
    wait(): Promise<Slot> {
      const waiter = Promise.withResolvers<Slot>();
      waiting.push(waiter);
      return waiter.promise;
    },
    async run<T>(slot: Slot, work: (database: Database) => Promise<T>): Promise<T> {
      const { database } = slot;
      try {
        const result = await work(database);
        slot.isLost = false;
        return result;
      } catch (error) {
        // The statement behind may have replaced it already.
        if (!isEnded && slot.database === database && (isSpent(error) || isOutdated(error))) {
          void database.end();
          openIn(slot);
        }
        throw error;
      }
    },
    release(slot: Slot): void {
      slot.running -= 1;
      if (slot.running > 0) return;
      const next = waiting.shift();
      if (next !== undefined) next.resolve(slot);
      else if (slot.isLost) idle.unshift(slot);
      else idle.push(slot);
    },
    async end(): Promise<void> {
      isEnded = true;
      for (const waiter of waiting.splice(0)) {
        waiter.reject(Object.assign(new Error("the connections are closed"), { code: "CONNECTION_ENDED" }));
      }
      await Promise.all(slots.map(({ database }) => database.end()));
    },
  };
}
