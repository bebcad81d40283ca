// Sandboxes: their days close when a company asks for it, and they can be emptied. No other tenant's can.
import t from "tap";
import { closeDay as route } from "../../../src/http/routes/close-day.ts";
import type { Coupon } from "../../support/caller.ts";
import {
  dateOf,
  listStatements,
  manyDistributors,
  moveToNoon,
  noonDate,
  openBooks,
} from "../../support/business-days.ts";
import { fits } from "../../support/fits.ts";
import { fillTenants, kept, listTables, readTenants, tenantsWithWebhooks } from "../../support/full-tenants.ts";
import { untilBlocked } from "../../support/race.ts";
import { newRequestId } from "../../support/request-id.ts";
import { scenario, type Scenario } from "../../support/scenario.ts";
import { beginRequest } from "../../support/sessions.ts";
import { readState } from "../../support/state.ts";
import { tenants } from "../../support/tenants.ts";
import { waitUntil } from "../../support/wait-until.ts";

const asSandboxes = (given: readonly object[]) => ({ tenants: given.map((one) => ({ ...one, sandbox: true })) });
const file = asSandboxes(tenants);
const distributors = { A: "pty_a", B: "pty_dist" };

type Side = Scenario["a"];

const closeDay = ({ distributor }: Pick<Side, "distributor">, more: object = {}) =>
  distributor.post(route.path, { request_id: newRequestId(), ...more });

const nextDay = (date: string) => dateOf(Date.parse(date) / 1000 + 86_400);

async function redeem({ till }: Side, coupon: Coupon): Promise<string> {
  await till.ok.redeem(coupon, { order_amount: 20 });
  return coupon.redemption;
}

/** The redemptions of the entries in the statement of a day, in their order. It is ready. */
async function readDay({ owner }: Scenario, { distributorParty }: Side, date: string): Promise<string[]> {
  const rows = await owner.rows<{ redemption: string }>(
    `select p.redemption
     from report.statement s
     join report.posting p on p.distributor = s.distributor and p.business_date = s.business_date
     where s.distributor = $1 and s.business_date = $2 and s.ready_at is not null
     order by p.number`,
    [distributorParty, date],
  );
  return rows.map((row) => row.redemption);
}

t.test("close_day closes the open day at once, and later entries go to the next one", async (t) => {
  const world = await scenario(t, { file });
  const { steps } = world;
  for (const side of [world.a, world.b]) {
    await moveToNoon(world, distributors[side.variant]);
    const today = noonDate();
    const coupons = (await side.makeCoupons(3)) as [Coupon, Coupon, Coupon];
    const first = await redeem(side, coupons[0]);
    await steps.sequence();
    fits(t, await closeDay(side), {
      status: 200,
      json: {
        ok: true,
        distributor_party_id: distributors[side.variant],
        business_date: today,
        next_business_date: nextDay(today),
      },
    });
    const second = await redeem(side, coupons[1]);
    await side.till.ok.reverse(coupons[0]);
    await steps.close();
    t.strictSame(await readDay(world, side, today), [first], "an entry after the close is not in the closed day");

    fits(t, await closeDay(side), { status: 200, json: { business_date: nextDay(today) } }, "ahead of the calendar");
    await steps.close();
    t.strictSame(
      await readDay(world, side, nextDay(today)),
      [second, first],
      "the redemption and the reversal after it",
    );

    // Three days later the calendar has reached the open day, and the worker closes it.
    const third = await redeem(side, coupons[2]);
    const countClosed = async () => (await listStatements(world)).filter((row) => row.is_ready).length;
    const before = await countClosed();
    await steps.close();
    t.equal(await countClosed(), before, "the open day is in the future, so the worker does not close it");
    await moveToNoon(world, distributors[side.variant], 3);
    await steps.close();
    t.equal(await countClosed(), before + 1);
    t.strictSame(await readDay(world, side, nextDay(nextDay(today))), [third]);
  }
});

t.test("close_day waits for what the caller has seen happen", async (t) => {
  const world = await scenario(t, { file });
  const { b: side, steps } = world;
  const psql = await world.openPsql();
  const [coupon] = (await side.makeCoupons(1)) as [Coupon];
  await steps.sequence();
  const redemption = await redeem(side, coupon);
  const closing = closeDay(side);
  const isWaiting = async () => {
    const [row] = await psql.rows<{ count: number }>(
      "select count(*)::int from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()",
    );
    return row!.count === 1;
  };
  await waitUntil("close_day to wait for the sequencer", isWaiting);
  await steps.sequence();
  const { status, json } = await closing;
  t.equal(status, 200);
  await steps.close();
  t.strictSame(await readDay(world, side, json.business_date), [redemption]);

  const other = await redeem(side, (await side.makeCoupons(1))[0]!);
  fits(t, await closeDay(side), { status: 503 }, "without a worker, nothing is closed");
  await steps.sequence();
  const again = await closeDay(side);
  await steps.close();
  t.strictSame(await readDay(world, side, again.json.business_date), [other]);
});

t.test("a tenant that is no sandbox closes its days only when they are over", async (t) => {
  const world = await scenario(t);
  for (const side of [world.a, world.b]) {
    await moveToNoon(world, distributors[side.variant]);
    const [coupon] = (await side.makeCoupons(1)) as [Coupon];
    await redeem(side, coupon);
    await world.steps.sequence();
    const before = await readState(world.owner);
    for (const more of [{}, { distributor: "pty_none" }])
      fits(t, await closeDay(side, more), { status: 409, json: { code: "NOT_A_SANDBOX", details: null } });
    t.strictSame(await readState(world.owner), before);
  }
  const early = world.owner.rows(`
    do $$ begin
      update core.ledger_book set open_on = open_on + 1;
      perform rules.write_statement(b.tenant_id, b.party_id, b.open_on - 1) from core.ledger_book b;
    end $$`);
  await t.rejects(early, /the day is not over/);
  const declare = (sandbox: boolean) =>
    world.apply({ tenants: [{ id: "ten_a", name: "A", variant: "A", ...(sandbox && { sandbox }) }] });
  await t.rejects(declare(true), /^tenants\.0\.sandbox: cannot change: the tenant is no sandbox$/);
  fits(t, await declare(false), { changed: 0 });
  for (const change of ["is_sandbox = true", "feed_base = 1"])
    await t.rejects(world.owner.rows(`update core.tenant set ${change}`), /sandbox/, change);
});

t.test("in Variant A, close_day names its distributor if there are several", async (t) => {
  const { parties, tenant } = manyDistributors(2);
  const world = await scenario(t, { file: asSandboxes([tenant]) });
  const distributor = world.as("ak_many");
  const missing = { status: 404, json: { code: "NOT_FOUND", details: { resource: "distributor" } } };
  fits(t, await closeDay({ distributor }), missing, "no batch has been released");
  await openBooks(world, parties, 1);
  await world.steps.sequence();
  fits(t, await closeDay({ distributor }), { status: 422, json: { code: "AMBIGUOUS_DISTRIBUTOR" } });
  fits(t, await closeDay({ distributor }, { distributor: "pty_none" }), missing);
  for (const party of parties) {
    const closed = await closeDay({ distributor }, { distributor: party });
    fits(t, closed, { status: 200, json: { distributor_party_id: party } });
  }
  await world.steps.close();
  t.equal((await listStatements(world)).filter((row) => row.is_ready).length, 2);
});

t.test("in Variant B, close_day is for the calling distributor", async (t) => {
  const world = await scenario(t, { file });
  await world.b.makeCoupons(1);
  await world.steps.sequence();
  const missing = { status: 404, json: { code: "NOT_FOUND", details: { resource: "distributor" } } };
  fits(t, await closeDay({ distributor: world.b.maker }), missing, "the maker distributes nothing");
  fits(t, await closeDay(world.b, { distributor: "pty_maker" }), missing);
  const request_id = newRequestId();
  const first = await closeDay(world.b, { distributor: "pty_dist", request_id });
  const before = await readState(world.owner);
  const second = await closeDay(world.b, { distributor: "pty_dist", request_id });
  t.equal(first.status, 200);
  t.equal(second.text, first.text, "a retry closes no second day");
  t.strictSame(await readState(world.owner), before);
});

const reset = ({ admin }: Scenario, tenant: string) =>
  admin.rows<{ batches: number; coupons: string }>("select batches, coupons from admin.reset_sandbox($1, 'again')", [
    tenant,
  ]);

t.test("a reset empties its sandbox, touches no other tenant, and the sandbox works as before", async (t) => {
  const world = await scenario(t, { file: asSandboxes(tenantsWithWebhooks()) });
  const { steps } = world;
  await fillTenants(world, closeDay);
  for (const [side, other] of [
    [world.a, world.b],
    [world.b, world.a],
  ] as const) {
    const feed = await side.distributor.get("/v1/events?limit=1000");
    const list = await side.till.get(`/v1/redemptions?merchant=${side.merchant}&limit=1000`);
    const before = await readTenants(world);
    const missing = (await listTables(world)).filter((name) => !(name in before[side.tenant]!) && !kept.includes(name));
    t.strictSame(missing, ["event_gap", "replaced_secret"], "nearly every table has rows of it");
    const [answer] = await reset(world, side.tenant);
    const after = await readTenants(world);
    t.ok(
      answer!.batches > 10 && Number(answer!.coupons) > 40,
      `${answer!.batches} batches, ${answer!.coupons} coupons`,
    );
    t.strictSame(
      Object.keys(after[side.tenant]!).filter((name) => !kept.includes(name)),
      [],
      "it is empty",
    );
    const { audit: _, tenant: __, ...own } = after[side.tenant]!;
    for (const name of Object.keys(own)) t.equal(own[name], before[side.tenant]![name], name);
    t.strictSame(after[other.tenant], before[other.tenant], "no other tenant is touched");
    t.strictSame([...(await world.owner.rows("select * from report.invariants"))], []);

    // Everything begins again: cursors go on, days begin with the calendar.
    await moveToNoon(world, side.distributorParty);
    const [coupon] = (await side.makeCoupons(1)) as [Coupon];
    const redemption = await redeem(side, coupon);
    await steps.close();
    fits(t, await side.distributor.get(`/v1/events?cursor=${feed.json.next_cursor}`), {
      status: 200,
      json: { events: [{ event_type: "coupon.redeemed", redemption_id: redemption }] },
    });
    fits(t, await side.till.get(`/v1/redemptions?merchant=${side.merchant}&cursor=${list.json.next_cursor}`), {
      status: 200,
      json: { redemptions: [{ redemption }] },
    });
    fits(t, await closeDay(side), { status: 200, json: { business_date: noonDate() } });
    await steps.close();
    t.strictSame(await readDay(world, side, noonDate()), [redemption]);
  }
  t.equal((await world.owner.rows("select from report.audit where action = 'reset_sandbox'")).length, 2);
});

t.test("only a sandbox can be reset, and a reset opens no row of another tenant", async (t) => {
  const world = await scenario(t, { file: { tenants: [...asSandboxes(tenants.slice(0, 2)).tenants, tenants[2]] } });
  for (const side of [world.a, world.b]) await side.makeCoupons(2, "REVERSED, consumed");
  await world.steps.sequence();
  const before = await readState(world.owner);
  await t.rejects(reset(world, "ten_b"), /ten_b is no sandbox/);
  await t.rejects(reset(world, "ten_none"), /no tenant ten_none/);
  t.strictSame(await readState(world.owner), before);
  const opened = await world.owner.rows<{ name: string }>(
    "select tgrelid::regclass::text as name from pg_trigger where tgname = 'tenant_may_lose_rows' order by 1",
  );
  t.equal(opened.length, 15);
  const psql = await world.openPsql();
  const note = (tenant: string) => `insert into core.audit (tenant_id, action, target, details)
    select tenant_id, 'reset_sandbox', 'test', jsonb_build_object('transaction', pg_current_xact_id()::text)
    from core.tenant where external_id = '${tenant}'`;
  for (const { name } of opened) {
    const remove = `delete from ${name} x using core.tenant t where t.tenant_id = x.tenant_id and t.external_id`;
    for (const [marked, deleted] of [
      [null, "ten_a"],
      ["ten_a", "ten_b"],
      ["ten_b", "ten_b"],
    ] as const) {
      const [row] = await psql.rows<{ has_rows: boolean }>(
        `select exists (
           select from ${name} x join core.tenant t using (tenant_id) where t.external_id = $1) as has_rows`,
        [deleted],
      );
      if (marked !== null && !row!.has_rows) continue;
      const script = `begin; ${marked === null ? "" : note(marked)}; ${remove} = '${deleted}'`;
      await t.rejects(psql.run(script), /keeps its rows: delete refused|violates foreign key/, `${name} ${marked}`);
      await psql.run("rollback");
    }
  }
});

t.test("a reset waits for calls that have begun, and calls that wait for it find nothing", async (t) => {
  const world = await scenario(t, { file });
  const { a: side, steps } = world;
  const [first, second] = (await side.makeCoupons(2)) as [Coupon, Coupon];
  await steps.sequence();
  const body = { request_id: "begun", coupon: first.code, merchant: side.merchant };
  const end = await beginRequest(world, "ak_a", "redeem", body);
  const resetting = reset(world, side.tenant);
  await untilBlocked(world, 1);
  await end("commit");
  t.strictSame({ ...(await resetting)[0] }, { batches: 1, coupons: "2" });
  t.equal((await readTenants(world))[side.tenant]!["redemption"], undefined, "the one that had begun is gone too");
  await steps.sequence();

  const psql = await world.openPsql();
  const [other] = (await side.makeCoupons(1)) as [Coupon];
  await psql.run("begin");
  await psql.rows("select admin.reset_sandbox('ten_a')");
  const calls = [side.till.redeem(other), side.maker.createBatch(side.template, 1)];
  await untilBlocked(world, 2);
  await psql.run("commit");
  const [redeemed, created] = await Promise.all(calls);
  fits(t, redeemed, { status: 404, json: { details: { resource: "coupon" } } });
  fits(t, created, { status: 200, json: { batch: { status: "PENDING" } } }, "a new batch is made after the reset");
  fits(t, await side.till.redeem(second), { status: 404 });
  t.equal((await side.makeCoupons(1)).length, 1);
  await steps.sequence();
});

t.test("work on what a reset has deleted ends without an error", async (t) => {
  const world = await scenario(t, { file });
  const { a: side, steps, owner, worker } = world;
  await side.makeCoupons(1, "REDEEMED");
  await side.maker.ok.createBatch(side.template, 3);
  await steps.sequence();
  await closeDay(side);
  const [batch] = await owner.rows<Record<string, number>>(
    "select tenant_id, batch_id from core.batch where status = 'PENDING'",
  );
  const [day] = await owner.rows<Record<string, unknown>>(
    "select tenant_id, distributor_id, business_date::text from core.statement",
  );
  await reset(world, side.tenant);
  const keys = Object.values(batch!);
  const holder = "00000000-0000-4000-8000-000000000000";
  const hashes = ["00000000-0000-4000-8000-000000000001"];
  const mint = "select is_complete from jobs.mint_chunk($1, $2, $3, 1, $4)";
  t.strictSame({ ...(await worker.rows(mint, [...keys, holder, hashes]))[0] }, { is_complete: true });
  const recall = "select is_over from jobs.recall_chunk($1, $2, $3, 10)";
  t.strictSame({ ...(await worker.rows(recall, [...keys, holder]))[0] }, { is_over: true });
  const of = Object.values(day!);
  await worker.rows("select jobs.summarize_statement($1, $2, $3::text::date)", of);
  const finish = "select jobs.finish_statement($1, $2, $3::text::date, 1, 1, 'x', 1, 1, 'x') as is_ready";
  t.strictSame({ ...(await worker.rows(finish, of))[0] }, { is_ready: false });
  t.strictSame(
    Object.keys((await readTenants(world))[side.tenant]!).filter((name) => !kept.includes(name)),
    [],
  );
});
