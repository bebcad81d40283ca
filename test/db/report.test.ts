// What holds for all views of report: who reads them, what their comments say, and how a balance adds up.
// report.find_… finds everything under an external ID, and nothing else.
import t, { type Test } from "tap";
import { openSession } from "../../src/database/connect.ts";
import type { Session } from "../../src/database/types.ts";
import { moveToNoon, setZone } from "../support/business-days.ts";
import type { Coupon } from "../support/caller.ts";
import { fillEveryTable } from "../support/every-table.ts";
import { fits } from "../support/fits.ts";
import { scenario, type Scenario } from "../support/scenario.ts";
import { states, type State } from "./api/states.ts";

let world: Scenario;
t.before(async () => {
  world = await scenario(t);
  for (const { addTemplate, makeCoupons } of [world.a, world.b]) {
    // Its distributor, maker and merchant have the other coupons in EUR.
    const inDollars = await addTemplate({ currency: "USD", after_reversal: "reissued" });
    for (const state of Object.keys(states) as State[])
      await makeCoupons(1, state, /reiss/.test(state) ? inDollars : undefined);
  }
  await world.steps.sequence();
});

// A view calls functions as its reader. Each read has a new session, because a session does not look up again what
// another role has used in it.
t.test("Both reading roles can read every view of report while it has rows", async (t) => {
  const views = await world.owner.rows<{ name: string }>(
    `select c.relname as name from pg_class c
     where c.relnamespace = 'report'::regnamespace and c.relkind = 'v' order by 1`,
  );
  for (const role of ["coupon_report", "coupon_admin"])
    for (const { name } of views) {
      const session = openSession(world.address, { name: "coupon test reader", role });
      await t.resolves(session.rows(`select * from report.${name}`), `${role} reads report.${name}`);
      await session.end();
    }
});

// The columns that a view sums up by. Each must have what report.ledger has in the same columns.
const sums = {
  daily: "tenant distributor merchant template maker currency",
  daily_store: "tenant distributor merchant store currency",
  daily_distributor: "tenant distributor currency",
  daily_batch: "tenant distributor batch template maker currency",
  merchant_balance: "tenant merchant currency",
  maker_balance: "tenant maker currency",
  distributor_balance: "tenant distributor currency",
  batch: "tenant batch template maker distributor currency",
};

/** Compares the sums with the ledger and the counts with the coupons, whatever part of a day is closed. */
async function compareSums(t: Test, session: Session, moment: string): Promise<void> {
  for (const [view, names] of Object.entries(sums)) {
    const columns = names.replaceAll(" ", ", ");
    const net = view.endsWith("balance") ? "balance" : "net_amount";
    const ofLedger = `select ${columns}, count(*) filter (where reversal is null) as redemptions,
        count(reversal) as reversals, sum(discount_amount) as net from report.ledger group by ${columns}`;
    const ofView = `select ${columns}, sum(redemption_count), sum(reversal_count), sum(${net}) from report.${view}
        where redemption_count + reversal_count > 0 group by ${columns}`;
    const wrong = await session.rows(`(${ofLedger} except ${ofView}) union all (${ofView} except ${ofLedger})`);
    t.strictSame([...wrong], [], `report.${view}, ${moment}`);
  }
  const days = "tenant, distributor, business_date, is_closed, currency";
  const sum = (view: string) => `
    select ${days}, sum(redemption_count), sum(reversal_count), sum(net_amount) from report.${view} group by ${days}`;
  for (const other of ["daily_store", "daily_batch", "daily_distributor"])
    t.strictSame([...(await session.rows(`${sum("daily")} except ${sum(other)}`))], [], `${other}, ${moment}`);
  const statuses = { issued: "'ISSUED', 'CREATED'", locked: "'LOCKED'", redeemed: "'REDEEMED'", expired: "'EXPIRED'" };
  const counts = Object.entries({ ...statuses, voided: "'VOIDED'" });
  const wrong = await session.rows(
    `select batch, ${counts.map(([name]) => `${name}_count`).join()} from report.batch where minted_count > 0
     except
     select batch, ${counts.map(([, some]) => `count(*) filter (where status in (${some}))`).join()}
     from report.coupon group by batch`,
  );
  t.strictSame([...wrong], [], `coupons by status, ${moment}`);
}

t.test("Sums and counts are those of the ledger and the coupons at every moment of a business day", async (t) => {
  const fresh = await scenario(t);
  const { steps, a, b } = fresh;
  const reader = openSession(fresh.address, { name: "coupon test reader", role: "coupon_report" });
  t.teardown(reader.end);
  const psql = await fresh.openPsql({ triggers: false });
  const isRight = (moment: string) => compareSums(t, reader, moment);
  const beginDay = async (day: number) => {
    for (const party of ["pty_a", "pty_dist"]) await moveToNoon(fresh, party, day);
  };
  const dollars = { currency: "USD", after_reversal: "reissued" };
  const sides = [
    { ...a, templates: [undefined, await a.addTemplate(dollars)], store: { store: "S1" } },
    { ...b, templates: [undefined, await b.addTemplate(dollars)], store: {} },
  ];
  async function redeem(): Promise<void> {
    for (const { till, makeCoupons, templates, store } of sides)
      for (const template of templates) {
        const [one, two] = (await makeCoupons(2, "ISSUED", template)) as [Coupon, Coupon];
        await till.ok.redeem(one, store);
        await till.ok.redeem(two);
        await till.ok.reverse(one);
      }
  }

  await beginDay(0);
  await redeem();
  await extendCoupons(fresh, sides[0]!.templates[1]!);
  await isRight("not sequenced");
  await psql.run("update core.party set time_zone = 'Mars/Base' where external_id = 'pty_a'");
  await steps.sequence();
  t.not((await psql.rows("select from core.event_gap where party_id is not null")).length, 0);
  await isRight("waiting for a party whose time zone is unknown");
  await beginDay(0);
  await psql.run("update core.stuck_work set tried_at = '2020-01-01'");
  // Its entries, and then its day.
  for (const limit of [100, 100]) await fresh.worker.rows("select jobs.try_stuck_work($1)", [limit]);
  await redeem();
  await steps.sequence();
  t.equal((await psql.rows("select from core.event_gap where party_id is not null")).length, 0);
  await isRight("posted to the open day");
  await beginDay(1);
  await redeem();
  await isRight("the day is over, and later entries are not sequenced");
  await steps.sequence();
  await isRight("posted to the next day, before the day is closed");
  await steps.closeDays();
  await isRight("closed, and not summed up");
  const day = "tenant_id, distributor_id, business_date";
  await fresh.worker.rows(`select jobs.summarize_statement(${day}) from jobs.list_due_statements(1)`);
  await isRight("one of two distributors is summed up");
  await steps.finishStatements();
  await redeem();
  await isRight("the statements are ready, and the next day goes on");
});

/** Coupons that do not end with their batch, which is valid or over; expired by the job or not. */
async function extendCoupons({ a: { till, makeCoupons }, admin, makeBatch, steps }: Scenario, template: string) {
  const extend = (to: string, ...coupons: Coupon[]) =>
    admin.rows("select admin.extend_coupon('ten_a', c, $2, 'a test') from unnest($1::text[]) c", [
      coupons.map(({ id }) => id),
      to,
    ]);
  const [shorter, later, locked, used, voided, longer] = (await makeCoupons(6, "ISSUED", template)) as Coupon[];
  await till.ok.lock(locked!);
  await till.ok.lock(used!);
  const over = await makeBatch(till, template, 4, { isOver: true });
  await extend("2098-01-01", longer!, ...over.coupons.slice(0, 3));
  await till.ok.redeem(over.coupons[0]!);
  await till.ok.void(over.coupons[1]!);
  await till.ok.void(voided!);
  await extend("2021-01-01", shorter!, locked!, used!);
  await till.ok.confirm(used!);
  await steps.expire();
  await till.ok.reverse(used!);
  await extend("2021-01-01", later!);
}

// The comments: a reader finds the meaning of each column, and a tool finds keys and joins, as PostGraphile's smart
// comments: @primaryKey a,b and @foreignKey (a,b) references report.view (c,d).
type Reference = { view: string; columns: string; target: string; targetColumns: string };

// Rows without a key of their own: a day without a store, an attempt of a delivery, a request without a calling
// party, a violation.
const withoutKey = ["daily_store", "delivery_attempt", "invariants", "request"];

async function readKeys(session: Session): Promise<{ keys: Map<string, string>; references: Reference[] }> {
  const views = await session.rows<{ name: string; comment: string }>(
    `select relname::text as name, obj_description(oid, 'pg_class') as comment from pg_class
     where relnamespace = 'report'::regnamespace and relkind = 'v' order by 1`,
  );
  const keys = new Map<string, string>();
  const references: Reference[] = [];
  for (const { name, comment } of views) {
    for (const tag of comment.split("\n").filter((line) => line.startsWith("@"))) {
      const key = /^@primaryKey ([\w,]+)$/.exec(tag);
      const reference = /^@foreignKey \(([\w,]+)\) references report\.(\w+) \(([\w,]+)\)$/.exec(tag);
      if (key !== null) keys.set(name, key[1]!);
      else if (reference !== null)
        references.push({ view: name, columns: reference[1]!, target: reference[2]!, targetColumns: reference[3]! });
      else throw new Error(`${name}: unknown tag ${tag}`);
    }
    if (!keys.has(name)) t.ok(withoutKey.includes(name), `${name} has a key`);
  }
  return { keys, references };
}

t.test("The key of each view is unique without nulls, and each reference finds its row by such a key", async (t) => {
  const { session } = await fillEveryTable(t);
  const { keys, references } = await readKeys(session);
  for (const [view, columns] of keys) {
    const [row] = await session.rows(
      `select count(*)::int as rows, count(distinct (${columns}))::int as keys,
              count(*) filter (where num_nulls(${columns}) > 0)::int as nulls from report.${view}`,
    );
    fits(t, row, { keys: row!["rows"], nulls: 0 }, view);
    t.ok(row!["rows"] as number, `${view} has rows`);
  }

  const used = new Set<string>();
  for (const { view, columns, target, targetColumns } of references) {
    t.equal(keys.get(target), targetColumns, `${view} (${columns}) references a key`);
    const [row] = await session.rows(
      `select count(*)::int as set,
              count(*) filter (where (${columns}) in (select ${targetColumns} from report.${target}))::int as found
       from report.${view} where num_nulls(${columns}) = 0`,
    );
    t.equal(row!["found"], row!["set"], `${view} (${columns}) finds its row in ${target}`);
    if (row!["set"] !== 0) used.add(view);
  }
  t.strictSame([...used].sort(), [...new Set(references.map(({ view }) => view))].sort(), "views with rows");
});

t.test("One ID of a redemption, its reversal, their entries or events finds all of them", async (t) => {
  const fresh = await scenario(t);
  const { till, makeCoupons } = fresh.a;
  const [coupon, other, voided] = (await makeCoupons(3)) as [Coupon, Coupon, Coupon];
  await till.ok.redeem(coupon, { order_id: "order-1" });
  const { reversal } = await till.ok.reverse(coupon);
  await till.ok.redeem(other, { order_id: "order-2" });
  await till.ok.void(voided);
  // As if the entries had been recorded in the westernmost time zone, in the last moment of a day. In UTC it is the
  // next day, and almost noon.
  await setZone(fresh, "pty_a", "Etc/GMT+12");
  const psql = await fresh.openPsql({ triggers: false });
  await psql.run("update core.ledger_entry set recorded_at = '2026-01-02 11:59:59.999999Z'");
  await fresh.steps.sequence();
  const reader = openSession(fresh.address, { name: "coupon test reader", role: "coupon_report" });
  t.teardown(reader.end);
  const find = async (name: string, column: string, id: string) => {
    const text = `select ${column}::text as found from report.find_${name}($1) order by 1`;
    return (await reader.rows<{ found: string }>(text, [id])).map(({ found }) => found);
  };

  const entries = [coupon.redemption.replace("red", "led"), reversal.replace("rvs", "led")];
  const events = entries.map((id) => id.replace("led", "evt"));
  const postings = entries.map((entry, index) => `2026-01-01 ${entry} ${index + 1}`);
  for (const id of [coupon.id, coupon.redemption, reversal, ...entries, ...events]) {
    t.strictSame(await find("ledger", "entry", id), entries.toSorted(), `entries of ${id}`);
    const found = await find("posting", "business_date || ' ' || entry || ' ' || number", id);
    t.strictSame(found, postings.toSorted(), `postings of ${id}`);
    t.strictSame(await find("event", "event", id), events.toSorted(), `events of ${id}`);
    t.strictSame(await find("redemption", "redemption", id), [coupon.redemption], `redemptions of ${id}`);
  }
  t.strictSame(await find("coupon", "status", coupon.id), ["REDEEMED"]);
  t.strictSame(await find("event", "event_type", voided.id), ["coupon.voided"], "an event without a redemption");
  for (const name of ["ledger", "posting", "event", "redemption", "coupon"])
    for (const id of ["", "cpn_", "order-1", coupon.id.toUpperCase(), `${coupon.id}0`])
      t.strictSame(await find(name, "tenant", id), [], `find_${name} of '${id}'`);
});

t.test("A range of keys is a range of times", async (t) => {
  const [row] = await world.owner.rows<{ lowest: string; around: boolean; before: number; after: number }>(
    `select report.make_key('2026-11-22 10:00:00.123Z') as lowest,
            count(*) filter (where redemption_key < report.make_key(started_at - interval '1 second'))::int as before,
            count(*) filter (where redemption_key > report.make_key(started_at + interval '1 second'))::int as after,
            count(*) > 10 as around
     from report.redemption`,
  );
  const milliseconds = Date.parse("2026-11-22T10:00:00.123Z").toString(16).padStart(12, "0");
  const lowest = `${milliseconds.slice(0, 8)}-${milliseconds.slice(8)}-0000-0000-000000000000`;
  t.strictSame({ ...row! }, { lowest, around: true, before: 0, after: 0 });
});
