// A tenant that has left for another cell: a day later its rows here are deleted in steps. Rows of tenants that live
// here stay, whatever else the database says.
import t from "tap";
import { createOldRowPruner } from "../../src/worker/tasks/prune.ts";
import { readConfig } from "../../src/config/config.ts";
import type { Coupon } from "../support/caller.ts";
import { moveToNoon } from "../support/business-days.ts";
import { fits } from "../support/fits.ts";
import { fillTenants, kept, listTables, readTenants, tenantsWithWebhooks } from "../support/full-tenants.ts";
import { findBrokenInvariants } from "../support/inspect.ts";
import { pullEvents } from "../support/pull-events.ts";
import { untilBlocked } from "../support/race.ts";
import { scenario, type Scenario } from "../support/scenario.ts";
import type { Session } from "../../src/database/types.ts";

let world: Scenario;
let psql: Session;
t.before(async () => {
  world = await scenario(t, { file: { tenants: tenantsWithWebhooks() } });
  for (const side of [world.a, world.b]) await moveToNoon(world, side.distributorParty);
  await fillTenants(world, (side) => moveToNoon(world, side.distributorParty, 1));
  psql = await world.openPsql();
});

const clear = async (of: Pick<Session, "rows"> = world.worker): Promise<number> =>
  (await of.rows<{ done: number }>("select jobs.clear_departed('1 day', 3) as done"))[0]!.done;
const setTenant = (side: Scenario["a"], change: string) =>
  psql.rows(`update core.tenant set ${change} where external_id = $1`, [side.tenant]);
const leave = (side: Scenario["a"], ago: string) => setTenant(side, `home = 2, left_at = now() - interval '${ago}'`);
const readCleared = async (side: Scenario["a"]) =>
  (await psql.rows("select from core.tenant where external_id = $1 and cleared_at is not null", [side.tenant])).length;

t.test("Rows of a tenant that has not left are kept, whatever else has happened", async (t) => {
  const { a, b } = world;
  const tables = (await listTables(world)).filter((name) => !kept.includes(name) && name !== "request");
  const before = await readTenants(world);
  const remove = async (table: string) => {
    try {
      await psql.run(`begin; delete from core.${table} where tenant_id = 1; set constraints all immediate`);
      return null;
    } catch (error) {
      return (error as Error).message;
    } finally {
      await psql.run("rollback");
    }
  };
  // Of these, work deletes rows of any tenant.
  const free = "coupon_extension delivery_attempt event_gap lock_cancellation recalled_lock replaced_secret";
  const freeTables = [...free.split(" "), "stuck_work", "test_delivery"];
  const refusal = /keeps its rows|violates foreign key|feed keeps the pages|has not accepted|until it has expired/;
  const ofCell = (number: number) => psql.rows("update core.cell set number = $1", [number]);
  for (const [state, change, cell] of [
    ["lives here", "home = 1", 1],
    ["is closed", "fence = 1, drained = 1", 1],
    ["has a home elsewhere, and has not left", "home = 2", 1],
    ["has left and come back", "home = 1, left_at = now() - interval '9 days'", 1],
    ["has left, and the cell has lost its number", "home = 2, left_at = now() - interval '9 days'", 3],
  ] as const) {
    await leave(b, "1 minute");
    await setTenant(a, change);
    await ofCell(cell);
    for (const table of tables)
      if (!freeTables.includes(table)) t.match((await remove(table)) ?? "nothing", refusal, `${table}: it ${state}`);
    t.equal(await clear(), 0, state);
    await ofCell(1);
    for (const side of [a, b]) await setTenant(side, "home = 1, left_at = null, fence = null, drained = null");
  }
  await leave(a, "1 minute");
  t.equal(await remove("delivery"), null, "those of one who has left may go");
  await setTenant(a, "home = 1, left_at = null");
  const after = await readTenants(world);
  for (const { tenant } of [a, b]) {
    const [{ tenant: _, ...was }, { tenant: __, ...is }] = [before[tenant]!, after[tenant]!];
    t.strictSame(is, was);
  }
});

t.test("A tenant that left a day ago is cleared in steps, and nobody else notices", async (t) => {
  for (const [side, other] of [
    [world.a, world.b],
    [world.b, null],
  ] as const) {
    // Events that the sequencer sees only while it is cleared.
    for (const coupon of await side.makeCoupons(2)) await side.till.ok.redeem(coupon);
    const { id } = await world.makeBatch(side.maker, side.template, 6);
    const broken = await world.openPsql({ triggers: false });
    await broken.rows(
      `delete from core.coupon
       where number = 3 and batch_id = (select batch_id from core.batch where external_id = $1)`,
      [id],
    );
    const before = await readTenants(world);
    const missing = (await listTables(world)).filter((name) => !(name in before[side.tenant]!) && !kept.includes(name));
    t.strictSame(missing, ["event_gap", "replaced_secret"], "nearly every table has rows of it");
    await leave(side, "23 hours 59 minutes");
    t.equal(await clear(), 0, "not earlier");
    await leave(side, "1 day");
    t.equal(await readCleared(side), 0);

    let steps = 0;
    for (let done = 1; done > 0; steps += 1) {
      // A step that is killed, and meanwhile another worker.
      await psql.run("begin");
      done = await clear(psql);
      t.equal(await clear(), 0, "one step at a time");
      await psql.run("rollback");
      t.equal(await clear(), done, "the same again");
      if (steps % 20 === 10) await world.steps.sequence();
      if (steps % 20 === 0) t.strictSame(await findBrokenInvariants(world.owner), []);
    }
    t.ok(steps > 20, `${steps} steps`);
    t.equal(await readCleared(side), 1);

    const { [side.tenant]: own, ...others } = await readTenants(world);
    const left = Object.keys(own!).filter((name) => !kept.includes(name));
    t.strictSame(left, ["request"], "recorded answers are pruned by their age");
    const { tenant: _, ...same } = own!;
    for (const name of Object.keys(same)) t.equal(same[name], before[side.tenant]![name], name);
    if (other === null) return;
    const { [side.tenant]: __, ...wereOthers } = before;
    t.strictSame(others, wereOthers, "no other tenant is touched");
    t.ok(
      (await psql.rows("select from rules.recorded_redemption_exists")).length > 0,
      "answers that name what is gone",
    );
    t.strictSame(await findBrokenInvariants(world.owner), []);
    await workOn(other);
  }

  async function workOn({ till, distributor, distributorParty, makeCoupons }: Scenario["a"]) {
    const [first, second] = (await makeCoupons(2)) as [Coupon, Coupon];
    await till.ok.redeem(first);
    await till.ok.lock(second);
    await till.ok.confirm(second);
    await world.steps.sequence();
    const { events } = await pullEvents(distributor, 1_000);
    fits(t, events.at(-1), { redemption_id: second.redemption });
    await moveToNoon(world, distributorParty, 2);
    await world.steps.close();
    t.strictSame(await findBrokenInvariants(world.owner), []);
  }
});

t.test("The worker clears all who have left, once a day", async (t) => {
  const { worker, owner } = world;
  await setTenant(world.a, "cleared_at = null");
  await psql.run("begin; select pg_advisory_xact_lock(rules.compute_sequencer_lock())");
  const last = clear();
  await untilBlocked(world, 1);
  await psql.run("commit");
  t.equal(await last, 1, "the last step waits for the sequencer");

  await psql.rows("update core.tenant set cleared_at = null, home = 2, left_at = now() - interval '2 days'");
  const prune = createOldRowPruner({
    database: worker,
    stopping: new AbortController().signal,
    retention: readConfig({}),
  });
  await prune();
  t.strictSame([...(await owner.rows("select from core.tenant where cleared_at is null"))], []);
  await t.rejects(psql.run("delete from core.voiding"), /keeps its rows/, "now the tables are closed again");
  const create = "select from core.request where operation = 'create_batch' and http_status = 200";
  t.ok((await owner.rows(create)).length > 0);
  await psql.run("alter table core.request disable trigger user; update core.request set recorded_at = '2020-01-01'");
  await prune();
  t.strictSame(
    [...(await owner.rows("select from core.request"))],
    [],
    "without its batch, no answer is kept for good",
  );
});
