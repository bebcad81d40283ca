// Streams the codes of a batch, encrypted to a party's public key. Codes are never written in the clear: they exist
// between deriveCodes and encryptTo. Each page is a separate SQL query, and is read when the caller has taken the last
// one, so a file of ten million codes takes a few chunks of memory, and a slow reader holds no database connection. The
// connection of a caller that reads nothing is closed (src/server/connections.ts), which frees its place.
import { setTimeout as sleep } from "node:timers/promises";
import { deriveCodes, type InTurn } from "../crypto/derive-codes.ts";
import { codesHeader, countCodesBytes, toCodeLines } from "../formats/codes-csv.ts";
import { encryptTo } from "../crypto/public-key.ts";
import type { CodesFile, Gate } from "../gate/gate.ts";
import type { Logger } from "../common/log.ts";
import type { MasterKeys } from "../crypto/keys.ts";
import { createOpenRequests } from "./open-requests.ts";
import type { Answer } from "./problem.ts";

export type ExportParts = {
  gate: Pick<Gate, "codesPage">;
  keys: MasterKeys;
  log: Logger;
  /** Files that are sent at the same time. */
  most: number;
  onRefused?: (() => void) | undefined;
};
type Opened = { isHead: boolean; deadline: number };
export type Exports = {
  /** Runs the call that opens an export, if there is a place for one more file; the file then keeps the place. */
  bound(tenantId: number, requestId: string, open: () => Promise<Answer>): Promise<Answer>;
  open(file: CodesFile, opened: Opened): Promise<Answer>;
};

// The time limit of each later page.
const pageWithinMs = 3_500;
// About 3 ms of work, on the thread that answers tills.
// equivalent mutant (literal): the size of a page is tuning
const codesPerPage = 250;
// After each page, no export works for twice as long. So all of them together take a third of the thread.
// equivalent mutant (literal): the pause is tuning
const pausePerPage = 2;

export function createExports({ gate, keys, log, most, onRefused = () => {} }: ExportParts): Exports {
  const places = createOpenRequests(most, { openRequests: 0 }, onRefused, "exports");
  const inTurn = createTurns();

  async function* render(file: CodesFile, deadline: number): AsyncGenerator<Uint8Array, void, undefined> {
    const source = { ...file, salt: Buffer.from(file.salt!, "hex") };
    let until = deadline;
    const readPage = (after: number) => gate.codesPage(file, after, codesPerPage, until);
    let text = codesHeader;
    for await (const page of deriveCodes(keys, source, readPage, { inTurn })) {
      yield Buffer.from(text + toCodeLines(page));
      // Counts from when the caller asks for more.
      until = performance.now() + pageWithinMs;
      text = "";
    }
  }

  return {
    async bound(tenantId, requestId, open) {
      places.add();
      const free = once(() => places.remove(tenantId));
      try {
        places.assign(tenantId);
        const answer = await open();
        if (!(answer.body instanceof ReadableStream)) return (free(), answer);
        const onEnd = (error?: unknown) => {
          free();
          if (error !== undefined) log.error({ request_id: requestId, err: error }, "export cut short");
        };
        return { ...answer, body: watch(answer.body, onEnd) };
      } catch (error) {
        free();
        throw error;
      }
    },

    // Fetches the first page before anything is sent, so that a failing database results in a 503. A later error cuts
    // the connection before content-length is reached.
    async open(file, { isHead, deadline }) {
      const pieces = render(file, deadline);
      const first = isHead ? null : await pieces.next();
      const encrypted = await encryptTo(file.public_key, ReadableStream.from(prepend(first, pieces)));
      const headers = {
        "content-type": "application/octet-stream",
        "content-length": String(encrypted.size(countCodesBytes(file.total_count))),
        "content-disposition": `attachment; filename="codes-${file.batch}.csv.age"`,
      };
      return { status: 200, code: null, body: isHead ? "" : encrypted, headers };
    },
  };
}

async function* prepend<T>(first: IteratorResult<T, void> | null, rest: AsyncGenerator<T, void>) {
  if (first === null || first.done === true) return;
  yield first.value;
  yield* rest;
}

/** Passes a stream on, and says when it is over. */
function watch(stream: ReadableStream<Uint8Array>, onEnd: (error?: unknown) => void): ReadableStream<Uint8Array> {
  const reader = stream.getReader();
  // A read that was under way ends after the caller has left.
  let isCancelled = false;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          if (isCancelled) return;
          if (!done) return controller.enqueue(value);
          onEnd();
          controller.close();
        } catch (error) {
          onEnd(error);
          throw error;
        }
      },
      async cancel(reason) {
        isCancelled = true;
        onEnd();
        await reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
}

// One page at a time for all exports, however many there are.
function createTurns(): InTurn {
  let free: Promise<unknown> = Promise.resolve();
  return async (work) => {
    const before = free;
    const { promise, resolve } = Promise.withResolvers<void>();
    free = promise;
    await before;
    const startedAt = performance.now();
    try {
      return work();
    } finally {
      void sleep((performance.now() - startedAt) * pausePerPage).then(resolve);
    }
  };
}

function once(act: () => void): () => void {
  let isDone = false;
  return () => {
    if (!isDone) act();
    isDone = true;
  };
}
