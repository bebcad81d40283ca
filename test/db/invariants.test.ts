// report.invariants finds every corruption. Each test corrupts rows with all triggers disabled, selects the view and
// rolls back. At least one corruption violates each invariant.
import t from "tap";
import type { Session } from "../../src/database/types.ts";
import { listCode } from "../../src/migration/db-files.ts";
import { createChecker } from "../../src/worker/tasks/check.ts";
import { closeOpenDays } from "../support/business-days.ts";
import { fits } from "../support/fits.ts";
import { scenario, type Scenario } from "../support/scenario.ts";
import { createStubLog } from "../support/stub.ts";
import { tenants } from "../support/tenants.ts";
import { corruptions } from "./corruptions.ts";

let world: Scenario;
let psql: Session;
t.before(async () => {
  const [tenantA, , tenantB] = structuredClone(tenants) as [any, any, any];
  tenantA.parties[0].webhook = { url: "https://example.com/hook" };
  tenantA.templates.push({ ...tenantA.templates[0], id: "tpl_again", after_reversal: "reissued" });
  // so that their days can be closed early
  tenantA.sandbox = tenantB.sandbox = true;
  world = await scenario(t, { file: { tenants: [tenantA, tenantB] }, mayBreakInvariants: true });
  await makeCoupons();
  await workOneDay();
  psql = await world.openPsql();
  // A DBA reads subjects, also with a date style of their own.
  await psql.run("set jit = off; set datestyle = 'German'");
});

// Coupons and batches in every state, made by the service itself.
async function makeCoupons(): Promise<void> {
  const { till } = world.a;
  const fixed = await world.makeBatch(till, "tpl_fixed", 5);
  const [locked, redeemed, voided, consumed] = fixed.coupons;
  await till.ok.lock(locked!);
  await till.ok.redeem(redeemed!);
  await till.ok.void(voided!);
  await till.ok.redeem(consumed!);
  await till.ok.reverse(consumed!);
  const [reissued] = (await world.makeBatch(till, "tpl_again", 1)).coupons;
  await till.ok.redeem(reissued!);
  await till.ok.reverse(reissued!);
  await world.makeBatch(till, "tpl_fixed", 2, { isOver: true });
  await world.makeBatch(till, "tpl_percent", 2, { isReleased: false });
  const [other] = await world.b.makeCoupons(2);
  await world.b.till.ok.redeem(other!);
}

// Two feeds and a closed business day, and after it a redemption and a pending batch.
async function workOneDay(): Promise<void> {
  const { owner, steps } = world;
  await steps.expire();
  await steps.sequence();
  await owner.rows(closeOpenDays);
  await owner.rows("select jobs.summarize_statement(tenant_id, distributor_id, business_date) from core.statement");
  await owner.rows(
    `select jobs.finish_statement(tenant_id, distributor_id, business_date, entry_count, 1, 'sha', 1, 1, 'sha')
     from core.statement`,
  );
  await world.a.makeCoupons(1, "REDEEMED");
  await world.a.maker.ok.createBatch("tpl_fixed", 3);
  await steps.sequence();
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

// How the subject of an invariant is named in its violations.
const subjects: [RegExp, RegExp][] = [
  [/^batch /, /^bat_\w{26}$/],
  [/^((expired or voided |issued |used |voided |recalled |consumed )?coupon|deliveries of a coupon) /, /^cpn_\w{26}$/],
  [/^redemption (has|follows) /, /^red_\w{26}$/],
  [/^reversal /, /^rvs_\w{26}$/],
  [/^((sequenced )?ledger entry|entry|posting has) /, /^led_\w{26}$/],
  [/^((sequenced |voided )?event|delivery|feed keeps) /, /^evt_\w{26}$/],
  [/^feed (counts|positions) /, /^((pty|ten)_\w+|a missing party \(key \d+\))$/],
  [
    /^(days|day sums|closed days|open day|posting (numbers|keeps)|(ready )?statement|summary) /,
    /^(pty_\w+|a missing party \(key \d+\)) \d{4}-\d\d-\d\d$/,
  ],
  [/^merchant (lists|pages) /, /^\d+( \d+)?$/],
  [/^recorded redemption /, /^test-/],
];

for (const [invariant, ways] of Object.entries(corruptions)) {
  t.test(`"${invariant}" finds every corruption`, async (t) => {
    for (const sql of ways) {
      const violations = await corrupt(sql);
      const found = violations.filter((one) => one.invariant === invariant);
      t.ok(found.length > 0, `${sql}: ${invariantsOf(violations).join("; ")}`);
      const [, subject] = subjects.find(([names]) => names.test(invariant))!;
      for (const one of found) fits(t, one, { tenant: /^ten_[ab]$/, subject }, sql);
    }
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
  const violated = Object.keys(corruptions).map((invariant) => invariant.replaceAll(" ", "_"));
  t.strictSame(violated.sort(), united);
});

t.test("The nightly self-check logs one error per violated invariant, or that all invariants hold", async (t) => {
  const { logger, log } = createStubLog();
  const stopping = new AbortController().signal;
  const check = createChecker({ address: world.address, role: "coupon_worker", log: logger, stopping });
  await check();
  fits(t, log.splice(0), [{ level: 30, msg: "self-check: all invariants hold" }]);
  await psql.run(
    `set session_replication_role = replica;
     update core.coupon set status = 'REDEEMED' where status = 'ISSUED';
     reset session_replication_role`,
  );
  await check();
  const violated = Map.groupBy(await readViolations(), ({ invariant }) => invariant);
  const logged = new Map(log.map((line) => [line["invariant"], line]));
  t.strictSame([log.length, new Set(logged.keys())], [violated.size, new Set(violated.keys())], "a line per invariant");
  for (const [invariant, { length: count }] of violated)
    fits(t, logged.get(invariant), { level: 50, count, example: /^ten_[ab] \w/ }, invariant);
});
