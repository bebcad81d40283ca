// Connections that hang for ever are replaced. The connections here are objects that hang as a dead network does.
import { setTimeout as sleep } from "node:timers/promises";
import t from "tap";
import { Unavailable } from "../../src/common/unavailable.ts";
import { openReconnecting } from "../../src/database/reconnecting.ts";
import type { Database } from "../../src/database/types.ts";
import { fits } from "../support/fits.ts";
import { waitFor } from "../support/wait-until.ts";

type Answer = "hangs" | "answers" | "answers slowly" | Error;

// Each connect takes the next answer. `ended` lists the connections that were ended.
function startReconnecting(answers: Answer[], deadlineMs?: number) {
  const [asked, ended] = [[] as [connection: number, text: string, params: unknown][], [] as number[]];
  let count = 0;
  const database = openReconnecting(() => {
    const connection = (count += 1);
    const answer = answers[connection - 1]!;
    return {
      async rows<T>(text: string, params?: readonly unknown[]): Promise<T[]> {
        asked.push([connection, text, params]);
        if (answer === "hangs") return new Promise<T[]>(() => {});
        if (answer instanceof Error) throw answer;
        if (answer === "answers slowly") await sleep(50);
        return [{ connection }] as T[];
      },
      async end() {
        ended.push(connection);
        throw new Error("the connection does not end");
      },
    } satisfies Database;
  }, deadlineMs);
  return { database, asked, ended, countConnects: () => count };
}

const late = "the database did not answer in time";

t.test("a call that gets no answer fails at the deadline, and later calls use a new connection", async (t) => {
  const { database, asked, ended } = startReconnecting(["hangs", "answers"], 30);
  const error = await waitFor(
    "the deadline",
    database.rows("select 1", [7]).catch((reason: unknown) => reason),
  );
  fits(t, error, { message: late });
  t.ok((error as Error).cause instanceof Unavailable);
  t.strictSame(await database.rows("select 2"), [{ connection: 2 }]);
  t.strictSame(asked, [
    [1, "select 1", [7]],
    [2, "select 2", undefined],
  ]);
  t.strictSame(ended, [1]);
});

t.test("reconnect fails every call that hangs, at once, and replaces the connection once", async (t) => {
  const { database, asked, ended, countConnects } = startReconnecting(["hangs", "answers", "answers"]);
  const hanging = [1, 2, 3].map((number) => database.rows(`select ${number}`));
  database.reconnect();
  const results = await waitFor("the calls to fail", Promise.allSettled(hanging), { withinMs: 10_000 });
  t.strictSame(
    results.map((result) => result.status === "rejected" && (result.reason as Error).message),
    hanging.map(() => late),
  );
  t.strictSame([countConnects(), ended], [2, [1]], "not once for each call");
  t.strictSame(await database.rows("select 4"), [{ connection: 2 }]);
  t.strictSame(asked.at(-1), [2, "select 4", undefined]);
});

t.test("a call may take until its deadline", async (t) => {
  for (const deadlineMs of [10_000, undefined]) {
    const { database, ended } = startReconnecting(["answers slowly"], deadlineMs);
    t.strictSame(await database.rows("select 1"), [{ connection: 1 }]);
    t.strictSame(ended, []);
  }
});

t.test("any other error is the caller's, and keeps the connection", async (t) => {
  const error = new Error("no such table");
  const { database, ended, countConnects } = startReconnecting([error, "answers"], 30);
  for (let number = 1; number <= 2; number += 1)
    t.equal(await database.rows("select 1").catch((reason: unknown) => reason), error);
  t.strictSame([countConnects(), ended], [1, []]);
});

t.test("end ends the connection that is in use", async (t) => {
  const { database, ended } = startReconnecting(["answers", "answers"]);
  database.reconnect();
  await t.rejects(database.end(), { message: "the connection does not end" });
  t.strictSame(ended, [1, 2]);
});
