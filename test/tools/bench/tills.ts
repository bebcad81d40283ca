// tills: what tills at a fixed rate notice of other work. Rounds without and with that work alternate, and the p99 is
// over all rounds.
import { setTimeout as wait } from "node:timers/promises";
import { createLog } from "../../../src/common/log.ts";
import { openConsole } from "../../../src/console.ts";
import { openSession } from "../../../src/database/connect.ts";
import { newRequestId } from "../../support/request-id.ts";
import { createClient } from "../../support/client.ts";
import { openPool, type Pool } from "./coupons.ts";
import { settle, type Environment, type Run } from "./environment.ts";
import { openLoader } from "./load.ts";
import { median, p99, type Row } from "./measure.ts";

type Work = {
  perSecond: number;
  /** Begins the work. The returned function ends it and may return how many coupons it handled in a second. */
  begin(environment: Environment, pool: Pool, seconds: number): Promise<() => Promise<number | undefined>>;
};

const works: Record<string, Work> = {
  "psql holds one coupon": { perSecond: 500, begin: holdCoupon },
  "a batch is minted": { perSecond: 200, begin: mint },
  "coupons expire": { perSecond: 200, begin: expire },
  "a batch is recalled": { perSecond: 200, begin: recall },
  "ten people look at the overview": { perSecond: 200, begin: look },
};

/** The size is how many seconds the load takes. */
export async function benchTills({ open, size, rounds }: Run): Promise<Row[]> {
  const environment = await open();
  const pool = await openPool(environment, Math.ceil(size * rounds * 2_000));
  const loader = openLoader();
  const load = async (perSecond: number): Promise<Float64Array> => {
    const start = await loader.prepare(environment, await pool.draw(Math.ceil(perSecond * size)), {
      connections: 64,
      perSecond,
    });
    return (await start()).latencies;
  };
  // A single round only shows that the bench works.
  if (rounds > 1) {
    await load(200);
    await settle(environment);
  }

  const rows: Row[] = [];
  for (const [name, { perSecond, begin }] of Object.entries(works)) {
    const [without, beside, rates]: [Float64Array[], Float64Array[], number[]] = [[], [], []];
    for (let number = 0; number < rounds; number += 1) {
      without.push(await load(perSecond));
      const end = await begin(environment, pool, size);
      beside.push(await load(perSecond));
      rates.push((await end()) ?? NaN);
    }
    rows.push({
      name,
      "tills/s": perSecond,
      "p99 ms without": p99(without),
      "p99 ms beside": p99(beside),
      "coupons/s": median(rates),
    });
  }
  await loader.end();
  return rows;
}

/** While a session holds the row of a coupon, a till tries to redeem that coupon every 100 ms. */
async function holdCoupon(environment: Environment, pool: Pool) {
  const [coupon] = await pool.draw(1);
  const psql = openSession(environment.address, { name: "coupon bench psql", role: "coupon_owner" });
  await psql.run("begin");
  await psql.rows("select from core.coupon where lookup_hash = $1 for update", [coupon!.lookup]);
  const client = createClient({ url: environment.url, ...environment.credential });
  const redeem = (request_id: string) => client.post("/v1/coupons/redeem", { ...coupon!.body, request_id });
  const requestIds: string[] = [];
  const asked: Promise<{ status: number }>[] = [];
  const ask = () => {
    requestIds.push(newRequestId());
    asked.push(redeem(requestIds.at(-1)!));
  };
  ask();
  const asking = setInterval(ask, 100);
  return async () => {
    clearInterval(asking);
    await psql.run("rollback");
    await psql.end();
    await Promise.all(asked);
    // One that has waited may redeem after its till got 503. So the tills repeat their calls.
    const repeated = await Promise.all(requestIds.map(redeem));
    const redeemed = repeated.filter(({ status }) => status === 200).length;
    if (redeemed !== 1) throw new Error(`the held coupon was redeemed ${redeemed} times`);
    return undefined;
  };
}

async function mint(environment: Environment, _pool: Pool, seconds: number) {
  return follow(environment, await environment.submit(Math.ceil(seconds * 50_000)), "minted_count");
}

/** A worker that starts looks for due coupons at once. */
async function expire(environment: Environment, _pool: Pool, seconds: number) {
  const { release, restartWorker, until } = environment;
  const batch = await release(Math.ceil(seconds * 8_000));
  await restartWorker(() => makeDue(environment, batch));
  await until("the first to expire", "expired_through > 0 as done from core.batch where external_id = $1", [batch]);
  return follow(environment, batch, "expired_through");
}

async function recall(environment: Environment, _pool: Pool, seconds: number) {
  const batch = await environment.release(Math.ceil(seconds * 10_000));
  const client = createClient({ url: environment.url, ...environment.credential });
  const { status } = await client.post("/v1/batches/recall", { request_id: newRequestId(), batch });
  if (status !== 200) throw new Error(`the recall was answered ${status}`);
  return follow(environment, batch, "recalled_through");
}

/** Each browser asks every 5 s, as the page does. The console runs here, not in the process of the tills. */
async function look({ address, keys }: Environment) {
  const token = "a".repeat(40);
  const config = { host: "127.0.0.1", port: 0, url: null, tokens: new Map([["bench", token]]), userHeader: null };
  const opened = (await openConsole(config, createLog("error")))!;
  await opened.serve({ address, keys });
  const signIn = { method: "POST", body: new URLSearchParams({ token }), redirect: "manual" } as const;
  const cookie = (await fetch(`${opened.url}/sign-in`, signIn)).headers.get("set-cookie")!.split(";")[0]!;
  const stopping = new AbortController();
  const people = Array.from({ length: 10 }, async (_, number) => {
    await wait(number * 500, null, stopping).catch(() => {});
    while (!stopping.signal.aborted) {
      const page = await fetch(`${opened.url}/`, { headers: { cookie } });
      if (page.status !== 200) throw new Error(`the overview was answered ${page.status}`);
      await page.text();
      await wait(5_000, null, stopping).catch(() => {});
    }
  });
  return async () => {
    stopping.abort();
    await Promise.all(people);
    await opened.stop();
    return undefined;
  };
}

/** The returned function says how many coupons were handled in a second, and then waits for the others. */
function follow({ database, until }: Environment, batch: string, column: string): () => Promise<number> {
  const since = performance.now();
  return async () => {
    const [row] = await database.rows<{ done: number }>(
      `select ${column} as done from core.batch where external_id = $1`,
      [batch],
    );
    const rate = row!.done / ((performance.now() - since) / 1_000);
    const isOver = `${column} = total_count as done from core.batch where external_id = $1`;
    await until(`the other coupons of ${batch}`, isOver, [batch]);
    return rate;
  };
}

/** Moves the end of validity to now, past the triggers and without a patch by an admin. */
async function makeDue({ address }: Environment, batch: string): Promise<void> {
  const session = openSession(address, { name: "coupon bench" });
  await session.run("set session_replication_role = replica");
  await session.rows(
    `with due as (
       update core.batch set valid_to = clock_timestamp() where external_id = $1 returning tenant_id, batch_id)
     update core.coupon c
     set valid_to = clock_timestamp()
     from due
     where c.tenant_id = due.tenant_id and c.batch_id = due.batch_id`,
    [batch],
  );
  await session.end();
}
