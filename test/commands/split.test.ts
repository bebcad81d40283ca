// Tenants move to the promoted standby of their cell: real servers, interrupted after each step and given up once.
import t, { type Test } from "tap";
import { goBack, split, type Split } from "../../src/commands/split.ts";
import type { Address } from "../../src/config/database-address.ts";
import { openSession } from "../../src/database/connect.ts";
import { migrate } from "../../src/migration/migrate.ts";
import type { Caller, Coupon } from "../support/caller.ts";
import type { Reply } from "../support/client.ts";
import { fits } from "../support/fits.ts";
import { findBrokenInvariants } from "../support/inspect.ts";
import { pullEvents } from "../support/pull-events.ts";
import { newRequestId } from "../support/request-id.ts";
import { scenario, type Scenario } from "../support/scenario.ts";
import { sequenceEvents } from "../support/sequence-events.ts";
import { useTemporaryFolder } from "../support/temporary-folder.ts";
import { waitUntil } from "../support/wait-until.ts";
import { startCluster } from "../tools/failover/cluster.ts";

type Sides = { old: Address; copy: Address; world: Scenario };

async function startSides(t: Test): Promise<Sides> {
  const cluster = await startCluster(t, useTemporaryFolder(t, "coupon-split-"), { isAsynchronous: true });
  await migrate(cluster.primary);
  return {
    old: cluster.primary,
    copy: cluster.standby,
    world: await scenario(t, { on: { address: cluster.primary } }),
  };
}

let sides: Sides;
let story: {
  first: Reply;
  redemption: { request_id: string };
  moved: Coupon;
  locked: Coupon;
  staying: Coupon;
  feed: unknown[];
};
const lines: string[] = [];
let parts: Split;
t.before(async () => {
  sides = await startSides(t);
  const { world, old, copy } = sides;
  const [moved, locked] = (await world.b.makeCoupons(2)) as [Coupon, Coupon];
  const [staying] = (await world.a.makeCoupons(1)) as [Coupon];
  const redemption = { request_id: newRequestId() };
  const first = await world.b.till.redeem(moved, redemption);
  await world.b.till.ok.lock(locked);
  await sequenceEvents(world.owner);
  const { events: feed } = await pullEvents(world.b.distributor, 100);
  story = { first, redemption, moved, locked, staying, feed };
  parts = { old, copy, tenants: ["ten_b"], to: 2, reason: "a test", log: (line) => void lines.push(line) };
});

const stopAfter = (step: RegExp) =>
  split({
    ...parts,
    log(line) {
      parts.log(line);
      if (step.test(line)) throw new Error("stopped");
    },
  });
const call = (by: Caller) => by.get("/v1/redemptions/red_00000000000000000000000000");

t.test("A split that was begun can be given up", async (t) => {
  const { a, b } = sides.world;
  await t.rejects(stopAfter(/closed/), { message: "stopped" });
  fits(t, await call(b.till), { status: 503 });
  fits(t, await call(a.till), { status: 404 });
  await t.rejects(split({ ...parts, tenants: ["ten_b", "ten_a"] }), { message: /not of one split/ });
  await goBack(parts);
  fits(t, await call(b.till), { status: 404 });
});

t.test("Servers that are mixed up or not fit are refused before anyone is closed", async (t) => {
  const { old, copy, world } = sides;
  const psql = await world.openPsql();
  const standby = openSession(copy, { name: "psql" });
  t.teardown(() => standby.end());
  const change = async (session: Pick<typeof standby, "run" | "rows">, setting: string) => {
    await session.run(`alter system ${setting}`);
    await session.rows("select pg_reload_conf()");
    t.teardown(async () => {
      await session.run(`alter system reset ${/set (\w+)/.exec(setting)![1]!}`);
      await session.rows("select pg_reload_conf()");
    });
  };
  // A setting takes a moment.
  const refuse = async (part: Partial<Split>, message: RegExp) => {
    const fail = () => split({ ...parts, ...part }).catch((error: Error) => error.message);
    await waitUntil(`${message}`, async () => message.test((await fail()) ?? ""), { withinMs: 3_000 });
  };
  await psql.run("create role patcher login; grant coupon_admin to patcher");
  await refuse({ old: { ...old, user: "patcher" } }, /DATABASE_URL: a split takes the login of a superuser/);
  await refuse({ old: copy, copy: old }, /DATABASE_URL is a standby/);
  await refuse({ copy: old }, /CELL_URL takes writes and is cell 1/);
  await refuse({ to: 1 }, /DATABASE_URL is cell 1/);
  await change(psql, "set synchronous_standby_names = 'two'");
  await refuse({}, /CELL_URL is a synchronous standby/);
  await psql.run("alter system reset synchronous_standby_names");
  await change(standby, "set synchronous_standby_names = 'one'");
  await refuse({}, /CELL_URL has synchronous_standby_names/);
  t.equal((await world.b.till.get("/v1/redemptions/red_00000000000000000000000000")).status, 404, "all are served");
});

t.test("A transaction that does not end makes it give up", async (t) => {
  const psql = await sides.world.openPsql();
  await psql.run("begin; select");
  await t.rejects(split(parts), { message: /the tenants are open again: a transaction of psql/ });
  await psql.run("rollback");
  fits(t, await call(sides.world.b.till), { status: 404 });
});

t.test("It goes on after each step that it was stopped at", async (t) => {
  for (const step of [/closed/, /every call has ended/, /promoted/, /live in cell 2/])
    await t.rejects(stopAfter(step), { message: "stopped" });
  const standby = openSession(sides.copy, { name: "psql" });
  t.teardown(() => standby.end());
  t.strictSame([...(await standby.rows("select from report.tenant"))], [], "no report has it twice");
  const clearing = (of: Pick<typeof standby, "rows">) =>
    of.rows(
      "select external_id as tenant, left_at < 'infinity' as is_begun from core.tenant where left_at is not null",
    );
  fits(t, await clearing(sides.world.owner), [{ tenant: "ten_b", is_begun: false }]);
  await t.rejects(goBack(parts), { message: /^ten_b lives in cell 2: / });
  await split(parts);
  await split(parts);
  fits(t, await clearing(sides.world.owner), [{ tenant: "ten_b", is_begun: true }]);
  fits(t, await clearing(standby), [{ is_begun: true }, { is_begun: true }]);
  // A failover to a standby that lacks the end of the split.
  const { owner } = sides.world;
  await owner.rows("update core.tenant set home = 1, left_at = null where external_id = 'ten_b'");
  await t.rejects(goBack(parts), { message: /^cell 2 serves ten_b: / });
  await owner.rows("select admin.release_tenants(fence, '{ten_b}', 2) from core.tenant where external_id = 'ten_b'");
  t.equal(lines.filter((line) => line === "the standby is promoted").length, 1);
});

t.test("Each half serves its own, and the moved tenant has all that it had", async (t) => {
  const { a, b, masterKeyText } = sides.world;
  const { first, redemption, moved, locked, staying, feed } = story;
  const half = await scenario(t, { on: { address: sides.copy, masterKeyText }, file: null });
  fits(t, await a.till.redeem(staying), { status: 200 });
  fits(t, await b.till.confirm(locked), { status: 503 });

  const { till, distributor } = half.b;
  t.equal((await till.redeem(moved, redemption)).text, first.text, "a recorded answer");
  await till.ok.confirm(locked);
  await sequenceEvents(half.owner);
  const { events } = await pullEvents(distributor, 100);
  t.strictSame(events.slice(0, feed.length), feed, "the feed goes on where it was");
  t.equal(events.length, feed.length + 1);
  const nonces = (of: Scenario) => of.owner.rows("select nonce from core.nonce where tenant_id = 3 order by nonce");
  const all = new Set((await nonces(half)).map(({ nonce }) => nonce));
  t.ok(
    (await nonces(sides.world)).every(({ nonce }) => all.has(nonce)),
    "its nonces stay spent",
  );

  const insert = `insert into core.tenant (external_id, name, variant, amount_unit)
    values ('ten_new', 'new', 'A', 'major') returning tenant_id, home`;
  t.strictSame([...(await half.owner.rows(insert))], [{ tenant_id: 1_000_001, home: 2 }]);
  for (const [{ owner }, tenants, gone] of [
    [sides.world, ["ten_a", "ten_a2"], ["ten_b"]],
    [half, ["ten_b", "ten_new"], ["ten_a", "ten_a2"]],
  ] as const) {
    await sequenceEvents(owner);
    t.strictSame(await findBrokenInvariants(owner), []);
    const rows = await owner.rows<{ tenant: string }>("select tenant from report.tenant order by 1");
    t.strictSame(
      rows.map(({ tenant }) => tenant),
      tenants,
    );
    const left = await owner.rows("select external_id from core.tenant where left_at is not null order by 1");
    t.strictSame(
      left.map(({ external_id }) => external_id),
      gone,
      "what this half has of the others is to be cleared",
    );
  }
});

// A trace of the model (NO_MARK in test/tools/model/split): one operator sees that the standby has everything. Another
// gives up, calls go on, and the next attempt begins. Then the first promotes.
t.test("A standby that was promoted for an attempt that was given up is not taken", async (t) => {
  const { old, copy, world } = await startSides(t);
  const { till, makeCoupons } = world.b;
  const [coupon] = (await makeCoupons(1)) as [Coupon];
  const log: string[] = [];
  const parts = { old, copy, tenants: ["ten_b"], to: 2, reason: "a test" };
  const stopAfter = (step: RegExp) =>
    split({
      ...parts,
      log(line) {
        log.push(line);
        if (step.test(line)) throw new Error("stopped");
      },
    });
  await t.rejects(stopAfter(/every call has ended/), { message: "stopped" });
  await goBack({ ...parts, log: () => {} });
  await till.ok.redeem(coupon);
  await t.rejects(stopAfter(/closed/), { message: "stopped" });
  const promoting = openSession(copy, { name: "psql" });
  t.teardown(() => promoting.end());
  await promoting.run("set coupon.cell = '1'");
  await promoting.run("alter system set coupon.cell = '2'");
  await promoting.rows("select pg_reload_conf()");
  await promoting.rows("select pg_promote()");

  await t.rejects(split({ ...parts, to: 3, log: () => {} }), { message: /takes writes and is cell 2/ });
  await t.rejects(split({ ...parts, log: () => {} }), { message: /lacks/ });
  const [row] = await promoting.rows<{ home: number }>("select home from core.tenant where external_id = 'ten_b'");
  t.equal(row!.home, 1, "it lives where its redemption is");
  await goBack({ ...parts, log: () => {} });
  fits(t, await till.redeem(coupon), { status: 409 });
});
