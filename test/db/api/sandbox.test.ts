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
import { newRequestId } from "../../support/request-id.ts";
import { scenario, type Scenario } from "../../support/scenario.ts";
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
