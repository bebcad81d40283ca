// report.invariants finds every corruption. Each test corrupts rows with all triggers disabled, selects the view and
// rolls back. At least one corruption violates each invariant.
import t from "tap";
import { Writable } from "node:stream";
import { connect, openSession } from "../../src/database/connect.ts";
import type { Session } from "../../src/database/types.ts";
import { listCode } from "../../src/migration/db-files.ts";
import { createLog } from "../../src/common/log.ts";
import { createChecker } from "../../src/worker/tasks/check.ts";
import { createExpirer } from "../../src/worker/tasks/expire.ts";
import { closeOpenDays } from "../support/business-days.ts";
import { fits } from "../support/fits.ts";
import { tenants } from "../support/tenants.ts";
import { newRequestId, startService, type Running } from "../support/service.ts";
import { corruptions } from "./corruptions.ts";

let service: Running;
let psql: Session;

async function must(accessKey: string, path: string, body: object): Promise<any> {
  const { status, text, json } = await service.as(accessKey).post(path, { request_id: newRequestId(), ...body });
  if (status !== 200) throw new Error(text);
  return json;
}
const redeem = (coupon: string) => must("ak_a", "/v1/coupons/redeem", { coupon, merchant: "mch_a" });

t.before(async () => {
  const [tenantA, , tenantB] = structuredClone(tenants) as [any, any, any];
  tenantA.parties[0].webhook = { url: "https://example.com/hook" };
  tenantA.templates.push({ ...tenantA.templates[0], id: "tpl_again", after_reversal: "reissued" });
  service = await startService(t, { tenants: [tenantA, tenantB] }, { mayBreakInvariants: true });
  await makeCoupons();
  await workOneDay();
  psql = openSession(service.address, { name: "psql" });
  // A DBA reads subjects, also with a date style of their own.
  await psql.run("set jit = off; set datestyle = 'German'");
  t.teardown(() => psql.end());
});

// Coupons and batches in every state, made by the service itself.
async function makeCoupons(): Promise<void> {
  const a = service.as("ak_a");
  const fixed = await service.makeBatch(a, "tpl_fixed", 5);
  const [locked, redeemed, voided] = fixed.codes as [string, string, string];
  await must("ak_a", "/v1/coupons/lock", { coupon: locked, merchant: "mch_a" });
  await redeem(redeemed);
  await must("ak_a", "/v1/coupons/void", { coupon: voided, merchant: "mch_a" });
  const reissued = await service.makeBatch(a, "tpl_again", 1);
  const { redemption } = await redeem(reissued.codes[0]!);
  await must("ak_a", "/v1/redemptions/reverse", { redemption });
  await service.makeBatch(a, "tpl_fixed", 2, { isOver: true });
  await service.makeBatch(a, "tpl_percent", 2, { isReleased: false });
  const b = await service.makeBatch(service.as("ak_maker"), "tpl_b", 2);
  await must("ak_pos", "/v1/coupons/redeem", { coupon: b.codes[0], merchant: "mch_b" });
}

// Two feeds and a closed business day, and after it a redemption and a pending batch.
async function workOneDay(): Promise<void> {
  const { owner } = service;
  const worker = connect(service.address, { name: "coupon test worker", role: "coupon_worker", max: 1 });
  t.teardown(() => worker.end());
  await createExpirer({ database: worker, stopping: new AbortController().signal })();
  const sequence = () => worker.rows("select * from jobs.sequence_events(1000)");
  await sequence();
  await owner.rows(closeOpenDays);
  await owner.rows("select jobs.summarize_statement(tenant_id, distributor_id, business_date) from core.statement");
  await owner.rows(
    `select jobs.finish_statement(tenant_id, distributor_id, business_date, entry_count, 1, 'sha', 1, 1, 'sha')
     from core.statement`,
  );
  await redeem((await service.makeBatch(service.as("ak_a"), "tpl_fixed", 1)).codes[0]!);
  await must("ak_a", "/v1/batches", { template: "tpl_fixed", total_count: 3 });
  await sequence();
}

type Violation = { invariant: string; tenant: string; subject: string };
const readViolations = () => psql.rows<Violation>("select invariant, tenant, subject from report.invariants");
const invariantsOf = (violations: Violation[]) => [...new Set(violations.map(({ invariant }) => invariant))].sort();

// Returns the violations that the corruption makes, and undoes it.
async function corrupt(sql: string): Promise<Violation[]> {
  await psql.run("begin; set local session_replication_role = replica");
  try {
    await psql.run(sql);
    return await readViolations();
  } finally {
    await psql.run("rollback");
  }
}

t.test("The service's own rows violate no invariant", async (t) => {
  t.strictSame([...(await psql.rows("select * from report.invariants"))], []);
});

// How the subject of an invariant is named in its violations.
const subjects: [RegExp, RegExp][] = [
  [/^batch /, /^bat_\w{26}$/],
  [/^(expired or voided |issued |used |voided )?coupon /, /^cpn_\w{26}$/],
  [/^redemption (has|follows) /, /^red_\w{26}$/],
  [/^reversal /, /^rvs_\w{26}$/],
  [/^((sequenced )?ledger entry|entry|posting has) /, /^led_\w{26}$/],
  [/^((sequenced |voided )?event|delivery|feed keeps) /, /^evt_\w{26}$/],
  [/^feed (counts|positions) /, /^\d+$/],
  [/^(days|closed days|open day|posting numbers|(ready )?statement|summary) /, /^\d+ \d{4}-\d\d-\d\d$/],
  [/^recorded redemption /, /^test-/],
];

for (const { invariant, done, sql } of corruptions) {
  t.test(`"${invariant}" is violated when ${done}`, async (t) => {
    const violations = await corrupt(sql);
    const found = violations.filter((one) => one.invariant === invariant);
    t.ok(found.length > 0, `violated: ${invariantsOf(violations).join("; ")}`);
    const [, subject] = subjects.find(([names]) => names.test(invariant))!;
    for (const one of found) fits(t, one, { tenant: /^ten_[ab]$/, subject });
  });
}

t.test("Each violation is a row, although two of them name the same subject", async (t) => {
  const found = await corrupt(`delete from core.event e using core.batch b
    where b.batch_id = e.batch_id and b.status = 'ALLOCATED' and b.tenant_id = 2`);
  t.strictSame(
    found.map(({ invariant, tenant }) => [invariant, tenant]),
    [1, 2].map(() => ["batch has its events", "ten_b"]),
  );
});

t.test("report.invariants unites every view of rules/invariant, and a corruption violates each of them", async (t) => {
  const views = await psql.rows<{ name: string; text: string }>(
    `select distinct v.relname as name, pg_get_viewdef(v.oid) as text
     from pg_depend d
     join pg_rewrite r on r.oid = d.objid and r.ev_class = 'report.invariants'::regclass
     join pg_class v on v.oid = d.refobjid and v.relkind = 'v' and v.relnamespace = 'rules'::regnamespace`,
  );
  const united = views.map(({ name }) => name).sort();
  const files = listCode().filter(({ path }) => path.startsWith("db/code/rules/invariant/"));
  t.strictSame(united, files.map(({ name }) => name).sort(), "the list in report.invariants is complete");
  for (const { name, text } of views) t.match(text, `SELECT '${name.replaceAll("_", " ")}'::text AS invariant`, name);
  const violated = new Set(corruptions.map(({ invariant }) => invariant.replaceAll(" ", "_")));
  t.strictSame([...violated].sort(), united);
});

t.test("The nightly self-check logs one error per violated invariant, or that all invariants hold", async (t) => {
  const lines: Record<string, unknown>[] = [];
  const stream = new Writable({
    write(chunk, _, done) {
      lines.push(JSON.parse(String(chunk)) as Record<string, unknown>);
      done();
    },
  });
  const check = createChecker({
    address: service.address,
    role: "coupon_worker",
    log: createLog("info", stream),
    stopping: new AbortController().signal,
  });
  await check();
  fits(t, lines, [{ level: 30, msg: "self-check: all invariants hold" }]);
  lines.length = 0;
  await psql.run(
    `set session_replication_role = replica;
     update core.coupon set status = 'REDEEMED' where status = 'ISSUED';
     reset session_replication_role`,
  );
  await check();
  const invariant = "coupon status matches redemptions";
  const [coupons] = await psql.rows<{ count: number }>(
    "select count(*)::int as count from report.invariants where invariant = $1",
    [invariant],
  );
  t.equal(
    lines.every(({ level }) => level === 50),
    true,
  );
  fits(
    t,
    lines.find((one) => one.invariant === invariant),
    { count: coupons!.count, example: /^ten_[ab] cpn_/ },
  );
  t.equal(lines.length, invariantsOf(await readViolations()).length, "one line per invariant");
});
