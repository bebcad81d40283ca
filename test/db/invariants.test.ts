// report.invariants sees what is broken: rows are corrupted behind the back of every constraint and trigger, one way
// at a time, and undone. Each law of the view is broken here at least once.
import t from "tap";
import { Writable } from "node:stream";
import { connect, openSession } from "../../src/database/connect.ts";
import type { Session } from "../../src/database/types.ts";
import { listCode } from "../../src/migration/db-files.ts";
import { createLog } from "../../src/common/log.ts";
import { createChecker } from "../../src/worker/tasks/check.ts";
import { createExpirer } from "../../src/worker/tasks/expire.ts";
import { tenants } from "../support/provisioning.ts";
import { newRequestId, startService, type Running } from "../support/service.ts";

let service: Running;
let psql: Session;

// A bit of everything, come about as it should: coupons and batches in every state, two feeds, a closed day.
t.before(async () => {
  const [tenantA, , tenantB] = structuredClone(tenants) as [any, any, any];
  tenantA.parties[0].webhook = { url: "https://example.com/hook" };
  tenantA.templates.push(
    { ...tenantA.templates[0], id: "tpl_past", valid_to: "2021-01-01T00:00:00Z" },
    { ...tenantA.templates[0], id: "tpl_again", after_reversal: "reissued" },
  );
  service = await startService(t, { tenants: [tenantA, tenantB] }, { mayBreakInvariants: true });
  const a = service.as("ak_a");
  const must = async (path: string, body: object, by = a) => {
    const { status, text, json } = await by.post(path, { request_id: newRequestId(), ...body });
    if (status !== 200) throw new Error(text);
    return json;
  };
  const redeem = (coupon: string) => must("/v1/coupons/redeem", { coupon, merchant: "mch_a" });
  const {
    codes: [locked, redeemed, voided],
  } = await service.makeBatch(a, "tpl_fixed", 5);
  await must("/v1/coupons/lock", { coupon: locked, merchant: "mch_a" });
  await redeem(redeemed!);
  await must("/v1/coupons/void", { coupon: voided, merchant: "mch_a" });
  const {
    codes: [again],
  } = await service.makeBatch(a, "tpl_again", 1);
  await must("/v1/redemptions/reverse", { redemption: (await redeem(again!)).redemption });
  await service.makeBatch(a, "tpl_past", 2);
  await service.makeBatch(a, "tpl_percent", 2, { isReleased: false });
  const b = await service.makeBatch(service.as("ak_maker"), "tpl_b", 2);
  await must("/v1/coupons/redeem", { coupon: b.codes[0], merchant: "mch_b" }, service.as("ak_pos"));

  const worker = connect(service.address, { name: "coupon test worker", role: "coupon_worker", max: 1 });
  t.teardown(() => worker.end());
  await createExpirer({ database: worker, stopping: new AbortController().signal })();
  const sequence = () => worker.rows("select * from jobs.sequence_events(1000)");
  await sequence();
  await service.owner.rows("select rules.close_day(b.tenant_id, b.party_id, b.open_on) from core.ledger_book b");
  await service.owner.rows("update core.ledger_book set open_on = open_on + 1");
  await service.owner.rows(
    "select jobs.summarize_statement(tenant_id, distributor_id, business_date) from core.statement",
  );
  await service.owner.rows(
    `select jobs.finish_statement(s.tenant_id, s.distributor_id, s.business_date, s.entry_count, 1, 'sha', 1, 1, 'sha') from core.statement s`,
  );
  await redeem((await service.makeBatch(a, "tpl_fixed", 1)).codes[0]!);
  await must("/v1/batches", { template: "tpl_fixed", total_count: 3 });
  await sequence();
  psql = openSession(service.address, { name: "psql" });
  await psql.run("set jit = off");
  t.teardown(() => psql.end());
});

// The laws that are broken when this has been done; then it is undone.
async function breakWith(corruption: string): Promise<string[]> {
  await psql.run("begin; set local session_replication_role = replica");
  try {
    await psql.run(corruption);
    return (await psql.rows<{ law: string }>("select distinct law from report.invariants order by law")).map(
      ({ law }) => law,
    );
  } finally {
    await psql.run("rollback");
  }
}

// One row of a table.
const one = (table: string, where = "true") =>
  `ctid = (select ctid from core.${table} where ${where} order by 1 limit 1)`;
const change = (table: string, set: string, where = "true") =>
  `update core.${table} set ${set} where ${one(table, where)}`;
const remove = (table: string, where = "true") => `delete from core.${table} where ${one(table, where)}`;
// A second row like one that is there, but for this.
const copy = (table: string, where: string, patch: string) =>
  `insert into core.${table} overriding system value select y.* from (select z as x from core.${table} z where ${where} limit 1) o, jsonb_populate_record(o.x, ${patch}) y`;
const event = (type: string) => `event_type = '${type}'`;

const corruptions: [law: string, tried: string, corruption: string][] = [
  [
    "coupon status matches redemptions",
    "a coupon made REDEEMED by hand",
    change("coupon", "status = 'REDEEMED'", "status = 'ISSUED'"),
  ],
  [
    "coupon status matches redemptions",
    "a redeemed coupon made ISSUED by hand",
    change("coupon", "status = 'ISSUED'", "status = 'REDEEMED'"),
  ],
  ["coupon status matches redemptions", "a lock that lost its redemption", remove("redemption", "status = 'LOCKED'")],
  [
    "coupon has one live redemption",
    "a second redemption",
    `drop index core.coupon_has_one_live_redemption; ${copy("redemption", "status = 'REDEEMED'", "jsonb_build_object('redemption_id', gen_random_uuid())")}`,
  ],
  [
    "redemption has coupon and merchant",
    "a merchant lost",
    change("redemption", "merchant_id = 0", "status = 'LOCKED'"),
  ],
  [
    "event is for the right party",
    "a batch event told to somebody else",
    change("event", "party_id = party_id + 1000", event("batch.generated")),
  ],
  [
    "event is for the right party",
    "an event moved to another coupon",
    change("event", "coupon_id = gen_random_uuid()", event("coupon.expired")),
  ],
  ["voided coupon has voiding", "a voiding deleted", remove("voiding")],
  [
    "voided coupon has voiding",
    "a voided coupon brought back",
    change("coupon", "status = 'ISSUED'", "status = 'VOIDED'"),
  ],
  [
    "redemption has its ledger entries",
    "an amount corrected",
    change("ledger_entry", "amount_minor = amount_minor - 1", "entry_type = 'REDEMPTION'"),
  ],
  ["redemption has its ledger entries", "another currency", change("ledger_entry", "currency = 'CHF'")],
  [
    "redemption has its ledger entries",
    "a reversal without its entry",
    remove("ledger_entry", "entry_type = 'REVERSAL'"),
  ],
  [
    "redemption has its ledger entries",
    "money for a lock",
    copy(
      "ledger_entry",
      "entry_type = 'REDEMPTION'",
      "(select jsonb_build_object('entry_id', r.redemption_id) from core.redemption r where r.status = 'LOCKED')",
    ),
  ],
  ["ledger entry has its redemption", "a redemption deleted", remove("redemption", "status = 'REDEEMED'")],
  ["ledger entry has its redemption", "a reversal deleted", remove("reversal")],
  [
    "redemption has its ledger entries",
    "the reversal of another redemption",
    change(
      "reversal",
      "redemption_id = (select r.redemption_id from core.redemption r where r.status = 'REDEEMED' limit 1)",
    ),
  ],
  [
    "reversal has reversed redemption",
    "a reversal undone",
    change("redemption", "status = 'REDEEMED', ended_at = null", "status = 'REVERSED'"),
  ],
  ["ledger entry has its event", "an event deleted", remove("event", event("coupon.redeemed"))],
  [
    "ledger entry has its event",
    "an event told to somebody else",
    change("event", "party_id = party_id + 1", event("coupon.reversed")),
  ],
  ["redemption event has its ledger entry", "a ledger entry deleted", remove("ledger_entry")],
  ["expired or voided coupon has its event", "an expiry hushed up", remove("event", event("coupon.expired"))],
  ["expired or voided coupon has its event", "a voiding hushed up", remove("event", event("coupon.voided"))],
  ["batch has the coupons it counts", "a coupon deleted", remove("coupon", "number = 1")],
  ["batch has the coupons it counts", "a coupon numbered anew", change("coupon", "number = 77", "number = 1")],
  ["batch has the coupons it counts", "a count corrected", change("batch", "minted_count = 1", "status = 'PENDING'")],
  ["batch has its events", "its event deleted", remove("event", event("batch.generated"))],
  [
    "batch has its events",
    "told twice",
    copy(
      "event",
      event("allocation.completed"),
      "jsonb_build_object('event_id', gen_random_uuid(), 'event_seq', 999999)",
    ),
  ],
  [
    "used coupon is released",
    "a release taken back",
    change(
      "batch",
      "status = 'COMPLETED', allocated_at = null",
      "batch_id = (select c.batch_id from core.coupon c where c.status = 'REDEEMED' limit 1)",
    ),
  ],
  ["feed positions are 1 to n", "an event taken out of the middle", remove("feed_event", "position = 2")],
  ["feed positions are 1 to n", "a position skipped", change("feed", "last_position = last_position + 1")],
  [
    "feed keeps the order of each coupon",
    "two events turned around",
    `
    create temp table pair on commit drop as
      select f.tenant_id, f.party_id, min(f.position) as low, max(f.position) as high
      from core.feed_event f join core.event e using (tenant_id, event_id) group by f.tenant_id, f.party_id, e.coupon_id having count(*) > 1 limit 1;
    update core.feed_event f set position = 1000 + f.position from pair p where (f.tenant_id, f.party_id) = (p.tenant_id, p.party_id) and f.position in (p.low, p.high);
    update core.feed_event f set position = p.low + p.high - (f.position - 1000) from pair p where (f.tenant_id, f.party_id) = (p.tenant_id, p.party_id) and f.position > 1000`,
  ],
  [
    "sequenced event is in its feed",
    "the last one removed without a trace",
    `
    update core.feed f set last_position = f.last_position - 1; delete from core.feed_event x using core.feed f where (x.tenant_id, x.party_id) = (f.tenant_id, f.party_id) and x.position > f.last_position`,
  ],
  [
    "sequenced event is in its feed",
    "a whole feed removed",
    "delete from core.feed_event where party_id = 0; delete from core.feed where party_id = 0",
  ],
  [
    "sequenced event is in its feed",
    "an event in somebody else's feed",
    "update core.event set party_id = party_id + 1 where coupon_id is not null and party_id in (select party_id from core.feed)",
  ],
  [
    "feed counts its events",
    "an event lost from a feed that was pruned",
    `
    delete from core.feed_event where position = 1; update core.feed set last_position = last_position - 1; delete from core.feed_event x using core.feed f where (x.tenant_id, x.party_id) = (f.tenant_id, f.party_id) and x.position > f.last_position`,
  ],
  ["sequenced ledger entry is posted", "a posting deleted", remove("posting")],
  [
    "posting has the distributor of its entry",
    "a posting moved",
    change("posting", "distributor_id = distributor_id + 1"),
  ],
  ["posting numbers are 1 to n", "a hole", change("posting", "number = number + 100")],
  [
    "statement counts its postings",
    "an entry pushed into a closed day",
    `
    update core.posting p set business_date = s.business_date, number = 99 from core.statement s
    where (s.tenant_id, s.distributor_id) = (p.tenant_id, p.distributor_id) and p.business_date > s.business_date`,
  ],
  ["statement counts its postings", "a count corrected", change("statement", "entry_count = entry_count + 1")],
  [
    "summary matches the ledger",
    "a line corrected",
    change("statement_line", "redemption_minor = redemption_minor + 1"),
  ],
  ["summary matches the ledger", "a line deleted", remove("statement_line")],
  ["days before the open day are closed", "a statement deleted", remove("statement", "entry_count > 0")],
  ["open day and later days are not closed", "a day opened again", change("ledger_book", "open_on = open_on - 1")],
  ["ready statement has its event", "its event deleted", remove("event", event("reconciliation.ready"))],
  [
    "ready statement has its event",
    "told before it is ready",
    change(
      "statement",
      "ready_at = null, detail_bytes = null, detail_sha256 = null, summary_rows = null, summary_bytes = null, summary_sha256 = null",
    ),
  ],
  ["recorded redemption exists", "a redemption deleted", remove("redemption", "lock_expires_at is not null")],
  [
    "delivery is parked after 10 attempts",
    "a tenth failure that was not parked",
    change("delivery", "attempt_count = 10"),
  ],
];

t.test("what came about as it should breaks no law", async (t) => {
  t.strictSame([...(await psql.rows("select * from report.invariants"))], []);
});

for (const [law, tried, corruption] of corruptions) {
  t.test(`${tried}: ${law}`, async (t) => {
    const laws = await breakWith(corruption);
    t.ok(laws.includes(law), `broken: ${laws.join("; ")}`);
  });
}

t.test("report.invariants unites every view of rules/invariant, and each of them is violated above", async (t) => {
  const views = await psql.rows<{ name: string; text: string }>(
    `select distinct v.relname as name, pg_get_viewdef(v.oid) as text
     from pg_depend d
     join pg_rewrite r on r.oid = d.objid and r.ev_class = 'report.invariants'::regclass
     join pg_class v on v.oid = d.refobjid and v.relkind = 'v' and v.relnamespace = 'rules'::regnamespace`,
  );
  const united = views.map(({ name }) => name).sort();
  const files = listCode().filter(({ path }) => path.startsWith("db/code/rules/invariant/"));
  t.strictSame(united, files.map(({ name }) => name).sort(), "the list in report.invariants is complete");
  for (const { name, text } of views) t.match(text, `SELECT '${name.replaceAll("_", " ")}'::text AS law`, name);
  const violated = new Set(corruptions.map(([law]) => law.replaceAll(" ", "_")));
  t.strictSame([...violated].sort(), united);
});

t.test("the nightly self-check logs each broken law as an error, and that all hold when they do", async (t) => {
  const lines: Record<string, unknown>[] = [];
  const log = createLog(
    "info",
    new Writable({
      write(chunk, _, done) {
        lines.push(JSON.parse(String(chunk)) as Record<string, unknown>);
        done();
      },
    }),
  );
  const check = createChecker({
    address: service.address,
    role: "coupon_worker",
    log,
    stopping: new AbortController().signal,
  });
  await check();
  t.match(lines, [{ level: 30, msg: "self-check: all invariants hold" }]);
  lines.length = 0;
  await psql.run(
    `set session_replication_role = replica; update core.coupon set status = 'REDEEMED' where status = 'ISSUED'; reset session_replication_role`,
  );
  await check();
  const [coupons] = await psql.rows<{ count: number }>(
    "select count(*)::int as count from report.invariants where law = 'coupon status matches redemptions'",
  );
  t.equal(
    lines.every(({ level }) => level === 50),
    true,
  );
  t.match(
    lines.find(({ law }) => law === "coupon status matches redemptions"),
    { count: coupons!.count, example: /^ten_[ab] cpn_/ },
  );
  t.equal(lines.length, (await psql.rows("select distinct law from report.invariants")).length, "one line a law");
});
