// serve in front of a router and two cells, each with a tenant. A cell that dies or hangs is nobody's matter but that
// of its tenants. Skipped where no PostgreSQL has PL/Proxy.
import t, { type Test } from "tap";
import { setTimeout as sleep } from "node:timers/promises";
import { defaultLimits } from "../../src/config/config.ts";
import { withRouter } from "../../src/commands/router-database.ts";
import type { Address } from "../../src/config/database-address.ts";
import { listen } from "../../src/http/listener.ts";
import { serve } from "../../src/serve.ts";
import { createCaller, type Caller, type Coupon } from "../support/caller.ts";
import { closeIdleConnections, createClient, sendPlain } from "../support/client.ts";
import { fits } from "../support/fits.ts";
import { startProxy } from "../support/proxy.ts";
import { addCells } from "../support/route.ts";
import { newRequestId } from "../support/request-id.ts";
import { findRouterBinaries, howToInstall } from "../support/router.ts";
import type { Scenario } from "../support/scenario.ts";
import { createStubLog } from "../support/stub.ts";
import { merchantOf, secretOf } from "../support/tenants.ts";
import { startTwoCells } from "../support/two-cells.ts";
import { waitUntil } from "../support/wait-until.ts";

const skip = findRouterBinaries() === undefined && howToInstall;

type Service = {
  router: Address;
  worlds: [Scenario, Scenario];
  /** The tills of both tenants, which call through the router. */
  tills: [Caller, Caller];
  /** Its access key exists nowhere. */
  stranger: Caller;
  coupons: [Coupon[], Coupon[]];
  /** In front of the second cell. */
  proxy: Awaited<ReturnType<typeof startProxy>>;
  log: Record<string, unknown>[];
  ready(): Promise<{ status: number; text: string }>;
};

async function startService(t: Pick<Test, "teardown">): Promise<Service> {
  const { router: address, worlds } = await startTwoCells(t);
  const [first, second] = worlds;
  const proxy = await startProxy(second.address);
  t.teardown(() => proxy.stop());
  await addCells(address, [first.address, { ...second.address, host: "127.0.0.1", port: proxy.port }]);

  const { logger, log } = createStubLog("info");
  const listening = await listen({ host: "127.0.0.1", port: 0, limits: defaultLimits }, logger);
  const consoleUrl = "https://cell-{cell}.example.com";
  const { keys } = first;
  const { url, stop } = await serve({ address, keys, limits: defaultLimits, consoleUrl, listening, log: logger });
  t.teardown(async () => {
    closeIdleConnections();
    await stop();
  });
  const till = (accessKey: string) =>
    createCaller(createClient({ url, accessKey, secret: secretOf(accessKey) }), merchantOf(accessKey));
  return {
    router: address,
    worlds,
    tills: [till("ak_a"), till("ak_pos")],
    stranger: till("ak_nobody"),
    coupons: [await first.a.makeCoupons(200), await second.b.makeCoupons(40)],
    proxy,
    log,
    ready: () => sendPlain(url, "GET", "/readyz"),
  };
}

let service: Service;
if (!skip) t.before(async () => void (service = await startService(t)));
const redeem = (index: 0 | 1) => service.tills[index].redeem(service.coupons[index].pop()!);

t.test("Each call reaches the cell of its tenant", { skip }, async (t) => {
  const { worlds, tills, coupons, ready } = service;
  for (const index of [0, 1] as const) {
    fits(t, await redeem(index), { status: 200, json: { ok: true } });
    const rows = await worlds[index].owner.rows("select tenant_id, status from core.redemption");
    fits(t, rows, [{ tenant_id: index * 1_000_000 + 1, status: "REDEEMED" }]);
  }
  fits(t, await tills[0].redeem(coupons[1][0]!), { status: 404 });
  fits(t, await ready(), { status: 200, text: '{"ok":true}' });
  const { json } = await tills[1].post("/v1/portal", { request_id: newRequestId() });
  t.match(json.url, /^https:\/\/cell-2\.example\.com\/sign-in/, "the pages of its cell");
});

for (const [how, mode] of [
  ["refuses connections", { cutsConnect: () => true }],
  ["is silent", { isStalled: true }],
] as const)
  t.test(`A cell that ${how} fails its own tenants only`, { skip }, async (t) => {
    const {
      tills: [tillA, tillB],
      proxy,
      log,
      ready,
    } = service;
    proxy.set(mode);
    if ("cutsConnect" in mode) proxy.cutAll();
    const statuses = { own: new Set<number>(), other: new Set<number>() };
    const took = { own: 0, other: 0 };
    const until = performance.now() + 6_000;
    async function call(side: "own" | "other", send: () => Promise<{ status: number }>) {
      const startedAt = performance.now();
      statuses[side].add((await send()).status);
      took[side] = Math.max(took[side], performance.now() - startedAt);
    }
    const callOn = async (side: "own" | "other", send: () => Promise<{ status: number }>) => {
      while (performance.now() < until) {
        await call(side, send);
        await sleep(side === "own" ? 20 : 100);
      }
    };
    await Promise.all([
      ...Array.from({ length: 10 }, () => callOn("own", () => tillB.get("/v1/redemptions/red_0000000000000000"))),
      callOn("other", () => tillA.get("/v1/batches")),
      callOn("other", () => redeem(0)),
    ]);
    t.strictSame([...statuses.own], [503], "never 401 and never 500");
    t.strictSame([...statuses.other], [200]);
    t.ok(took.own < 4_000, `an answer within 4 s: ${took.own}`);
    t.ok(took.other < 1_000, `others do not wait: ${took.other}`);
    fits(t, await ready(), { status: 200, text: '{"ok":true,"cells_not_ready":[2]}' });
    fits(
      t,
      log.splice(0).filter(({ cell }) => cell !== undefined),
      [{ cell: 2, msg: /^a cell is down/ }],
    );

    proxy.set({});
    const startedAt = performance.now();
    await waitUntil("the cell to serve again", async () => (await redeem(1)).status === 200);
    t.ok(performance.now() - startedAt < 5_000);
    fits(
      t,
      log.splice(0).filter(({ cell }) => cell !== undefined),
      [{ cell: 2, msg: "the cell answers again" }],
    );
    fits(t, await ready(), { status: 200, text: '{"ok":true}' });
  });

t.test("An access key that exists nowhere is unknown, unless a cell could not be asked", { skip }, async (t) => {
  const { stranger, proxy } = service;
  fits(t, await stranger.get("/v1/batches"), { status: 401, json: { code: "UNAUTHENTICATED" } });
  proxy.set({ cutsConnect: () => true });
  proxy.cutAll();
  fits(t, await stranger.get("/v1/batches"), { status: 503 });
  proxy.set({});
  await waitUntil("the cell", async () => (await stranger.get("/v1/batches")).status === 401);
});

t.test("A commit that a cell reports as not replicated is none for serve either", { skip }, async (t) => {
  const { router, worlds } = service;
  // What PostgreSQL warns of when the wait for a synchronous standby is cancelled has this code.
  const psql = await worlds[0].openPsql();
  const [{ text }] = (await psql.rows<{ text: string }>(
    "select pg_get_functiondef('gate.note_uses(int[], int[])'::regprocedure) as text",
  )) as [{ text: string }];
  await psql.run(text.replace(/\bbegin\b/i, "begin raise warning 'canceling wait';"));
  t.teardown(() => psql.run(text));
  const noting = withRouter(router, (database) => database.rows("select gate.note_uses('{1}', '{1}')"));
  await t.rejects(noting, { code: "COMMIT_NOT_REPLICATED" });
});

t.test("A tenant that has moved is found where it lives now", { skip }, async (t) => {
  const { router } = service;
  // As if the first cell were a copy of the second, to which the tenant has moved.
  const ask = (text: string) => withRouter(router, (database) => database.rows(text));
  await ask("insert into router.tenant values (1000001, 1)");
  fits(t, await redeem(1), { status: 200 });
  fits(t, await ask("select cell from router.tenant where tenant_id = 1000001"), [{ cell: 2 }]);
});

t.test("A cell that refuses a tenant is not down", { skip }, async (t) => {
  const { worlds, log } = service;
  log.length = 0;
  const psql = await worlds[1].openPsql();
  const close = "select admin.close_tenants((select array_agg(external_id) from core.tenant), 1, 'a split') as attempt";
  const [{ attempt }] = (await psql.rows<{ attempt: number }>(close)) as [{ attempt: number }];
  for (let calls = 0; calls < 12; calls += 1) {
    fits(t, await redeem(1), { status: 503 });
    await sleep(100);
  }
  t.strictSame(
    log.filter(({ cell }) => cell !== undefined),
    [],
  );
  await psql.rows("select admin.open_tenants($1)", [attempt]);
  fits(t, await redeem(1), { status: 200 });
});

t.test("The gate measures the commits of the cell, not those of the router", { skip }, async (t) => {
  const { router, worlds } = service;
  const mark = (cell: number) =>
    withRouter(router, (database) => database.rows<{ at: number }>("select gate.mark_commit($1) as at", [cell]));
  const readLog = async () => {
    const [row] = await worlds[1].owner.rows<{ at: string }>("select pg_current_wal_flush_lsn()::text as at");
    return row!.at;
  };
  const before = await readLog();
  t.ok(Math.abs((await mark(2))[0]!.at - Date.now()) < 60_000);
  const [log] = await worlds[1].owner.rows("select pg_current_wal_flush_lsn() > $1::text::pg_lsn as more", [before]);
  t.strictSame({ ...log! }, { more: true }, "the cell has flushed its log");
  await worlds[1].owner.rows(
    "create or replace function gate.mark_commit(p_cell int) returns float8 language sql volatile return 42",
  );
  t.strictSame((await mark(2))[0]!.at, 42, "it is the clock of this cell");
  t.not((await mark(1))[0]!.at, 42, "and not of another one");
});
