// What administrators and background work see and change where other owners have rows with the same keys: the rows of
// the named tenant and party, and no others. The rows of all tenants are compared before and after.
import t, { type Test } from "tap";
import { sqlState } from "../../../src/database/connect.ts";
import type { Story } from "../../support/owners.ts";
import type { Running } from "../../support/service.ts";
import { startOwners } from "../../support/start-owners.ts";
import { party } from "../../support/tenants.ts";
import { openWorkerSession } from "../../support/worker-session.ts";
import { compareRows, nameTables, readRows, toTwin } from "../../support/twin.ts";
import { calls, type Call, type Numbers } from "./owner-calls.ts";

let service: Running;
let stories: Story[];
let worker: number;
const alone = new Map<string, unknown[]>();

t.before(async () => {
  ({ service, stories } = await startOwners(t, {
    async beforeTwins(service) {
      for (const view of await listViews(service)) alone.set(view, await readView(service, view, "1"));
    },
  }));
  ({ number: worker } = await openWorkerSession(t, service.address));
});

async function listViews({ owner }: Running): Promise<string[]> {
  const rows = await owner.rows<{ name: string }>(
    `select c.relname as name from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant'
     where c.relnamespace = 'report'::regnamespace and c.relkind = 'v' order by 1`,
  );
  return rows.map(({ name }) => name);
}

// The rows of the tenants whose names end in `suffix`, without what differs between a tenant and its twin.
async function readView({ owner }: Running, view: string, suffix: string): Promise<unknown[]> {
  const rows = await owner.rows<{ row: unknown }>(
    `select to_jsonb(v) - '{tenant_id,event_seq,audit_id}'::text[] as row from report."${view}" v
     where tenant like 'ten\\__' || $1`,
    [suffix],
  );
  return rows.map(({ row }) => row);
}

const sorted = (rows: unknown[]) => rows.map((row) => JSON.stringify(sortKeys(row))).sort();
const sortKeys = (row: unknown) =>
  Object.fromEntries(Object.entries(row as object).sort(([a], [b]) => (a < b ? -1 : 1)));

// A twin exchanges these, see makeTwin.
const exchanged: Record<string, string> = { merchant: "delegates", template: "merchants" };

t.test("Every report shows the rows of each tenant once, under its own names", async (t) => {
  t.ok(alone.size > 20);
  for (const [view, rows] of alone) {
    t.strictSame(sorted(await readView(service, view, "1")), sorted(rows), `${view} beside the twins`);
    const known = ({ [exchanged[view] ?? ""]: _, ...row }: any) => row;
    const twins = (await readView(service, view, "2")).map(known);
    t.strictSame(sorted(twins), sorted(rows.map(toTwin).map(known)), `${view} of the twins`);
  }
  const twins = await readView(service, "merchant", "2");
  t.strictSame(
    twins.map(({ merchant, delegates }: any) => [merchant, delegates]).sort(),
    ["1", "1", "2", "2"].map((side) => [`mch_${side}`, side === "1" ? ["pty_p"] : []]),
  );
  const templates = (await readView(service, "template", "2")).filter(({ merchants }: any) => merchants !== null);
  t.strictSame(
    templates.map(({ template, merchants }: any) => [template, merchants]).sort(),
    ["1", "1", "2", "2"].map((side) => [`tpl_s${side}`, [side === "1" ? "mch_2" : "mch_1"]]),
  );
});

t.test("A balance adds up the ledger entries of its own distributor, maker or merchant only", async (t) => {
  for (const owner of ["distributor", "maker", "merchant"]) {
    const read = (amount: string, view: string) =>
      service.owner.rows<{ name: string; minor: number }>(
        `select concat_ws(' ', tenant, ${owner}, currency) as name, (100 * ${amount})::int as minor
         from report.${view} order by recorded_at, entry`,
      );
    const sums = new Map<string, number>();
    for (const { name, minor } of await read("discount_amount", "ledger"))
      sums.set(name, (sums.get(name) ?? 0) + minor);
    t.equal(sums.size, 2 * 4, `two of each ${owner} in each tenant`);
    t.strictSame(new Map((await read("balance", `${owner}_balance`)).map((row) => [row.name, row.minor])), sums);
  }
});

// A redemption has the same ID in a tenant and in its twin; so has the distributor, the day and the number of its line
// in each tenant.
t.test("report.find_… finds the rows of an ID in each tenant, and no others", async (t) => {
  const read = async (from: string, id: string) => {
    const rows = await service.owner.rows<{ row: object }>(`select to_jsonb(v) as row from report.${from}`, [id]);
    return sorted(rows.map(({ row }) => row));
  };
  for (const { tenant, coupons } of stories)
    for (const kind of ["redeemed", "reversed"] as const) {
      const { id, redemption } = coupons[kind];
      for (const view of ["ledger", "posting", "event", "redemption"]) {
        const found = await read(`find_${view}($1) v`, redemption!);
        t.equal(found.length, kind === "redeemed" || view === "redemption" ? 2 : 4, `${view} of ${tenant}, ${kind}`);
        t.strictSame(found, await read(`${view} v where redemption = $1`, redemption!));
      }
      t.strictSame(await read("find_coupon($1) v", id), await read("coupon v where coupon = $1", id));
    }
});

async function findNumbers(story: Story): Promise<Numbers> {
  const { tenant, distributorParty, batches } = story;
  const [row] = await service.owner.rows<Omit<Numbers, "worker">>(
    `select p.tenant_id as tenant, p.party_id as party,
            (select b.batch_id from core.batch b where b.external_id = $3) as pending,
            (select b.batch_id from core.batch b where b.external_id = $4) as released,
            (select jsonb_object_agg(m.version, encode(m.fingerprint, 'hex'))::text from core.master_key m) as keys,
            array(select d.event_id::text from core.delivery d
                  where d.tenant_id = p.tenant_id and d.party_id = p.party_id order by d.event_seq) as events
     from core.party p join core.tenant t using (tenant_id) where t.external_id = $1 and p.external_id = $2`,
    [tenant, distributorParty, batches["PENDING"]!.external_id, batches["ALLOCATED"]!.external_id],
  );
  return { ...row!, worker };
}

async function checkCall(t: Test, { name, args, answer, changes = {} }: Call, story: Story): Promise<void> {
  const numbers = await findNumbers(story);
  const given = args(story, numbers);
  // replay_event takes an ID of text.
  if (name === "admin.replay_event") given.splice(1, 1, await formatEvent(given.pop() as string));
  const before = await readRows(service.owner);
  const rows = await service.owner.rows<{ row: any }>(
    `select to_jsonb(r) as row from ${name}(${given.map(toPlaceholder).join(", ")}) r`,
    given,
  );
  const found = rows.map(({ row }) => row);
  const expected = answer?.(story, numbers);
  if (expected !== undefined) {
    const like = (row: any, wanted: unknown) =>
      wanted instanceof Object ? Object.fromEntries(Object.keys(wanted).map((name) => [name, row[name]])) : row;
    t.strictSame(
      found.map((row, index) => like(row, expected[index])),
      expected,
    );
  }
  t.strictSame(
    compareRows(before, await readRows(service.owner)),
    nameTables(story.tenant, changes),
    "only rows of the owner",
  );
}

function toPlaceholder(value: unknown, index: number): string {
  const cast = Array.isArray(value) ? "::text[]::uuid[]" : /^[[{]/.test(String(value)) ? "::text::jsonb" : "";
  return `$${index + 1}${cast}`;
}

async function formatEvent(id: string): Promise<string> {
  const [row] = await service.owner.rows<{ id: string }>("select rules.format_id('evt', $1::uuid) as id", [id]);
  return row!.id;
}

for (const [index, call] of calls.entries())
  t.test(`${index + 1}. ${call.name} changes rows of the named owner only`, async (t) => {
    for (const story of stories) await t.test(`${story.tenant}, side ${story.side}`, (t) => checkCall(t, call, story));
  });

t.test("A webhook is due if it has due deliveries itself", async (t) => {
  await service.owner.rows("update core.webhook set paused_until = null");
  for (const story of stories) {
    const { tenant, party } = await findNumbers(story);
    await service.owner.rows(
      `update core.delivery set next_attempt_at = clock_timestamp()
              + case when (tenant_id, party_id) = ($1, $2) then interval '-1 hour' else interval '1 hour' end`,
      [tenant, party],
    );
    const due = await service.owner.rows<any>("select tenant_id, party_id from jobs.list_due_webhooks(100)");
    t.strictSame(
      due.map((row) => ({ ...row })),
      [{ tenant_id: tenant, party_id: party }],
    );
  }
});

t.test(
  "webhook_health counts the attempts of each subscriber, and those without a 2xx answer as failures",
  async (t) => {
    const statuses: [status: number, failures: number, lastError: string][] = [
      [199, 2, "HTTP 199"],
      [200, 1, "HTTP 500"],
      [299, 1, "HTTP 500"],
      [300, 2, "HTTP 300"],
    ];
    // The later of two attempts of each subscriber.
    const later = "attempt_id in (select max(attempt_id) from core.delivery_attempt group by tenant_id, party_id)";
    await service.owner.rows(
      `update core.delivery_attempt set http_status = 500, attempted_at = attempted_at - interval '1 minute'
     where not ${later}`,
    );
    for (const [status, failures, lastError] of statuses) {
      await service.owner.rows(`update core.delivery_attempt set http_status = $1 where ${later}`, [status]);
      const rows = await service.owner.rows<any>(
        "select tenant, party, attempts_24h::int, failures_24h::int, last_error from report.webhook_health",
      );
      t.strictSame(
        rows.map((row) => Object.values(row)).sort(),
        stories.map(({ tenant, distributorParty }) => [tenant, distributorParty, 2, failures, lastError]).sort(),
      );
    }
  },
);

t.test("A call that names the wrong tenant is refused, and so is an event for a party without a webhook", async (t) => {
  const tenants = ["ten_a1", "ten_a2", "ten_b1", "ten_b2"];
  // In the twins the makers have webhooks, under the numbers that the makers have everywhere.
  for (const [twin, variant] of [
    ["ten_a2", "A"],
    ["ten_b2", "B"],
  ] as const) {
    const parties = [1, 2].map((side) => party(`pty_m${side}`, { webhook: { url: "http://127.0.0.1:9" } }));
    await service.apply({ tenants: [{ id: twin, name: twin, variant, parties }] });
  }
  const isRefused = async (tenant: string, call: string, id: string) => {
    const before = await readRows(service.owner);
    const error = await service.admin
      .rows(`select admin.${call}($1, $2, 'why')`, [tenant, id])
      .catch((reason) => reason);
    t.equal(sqlState(error), "CP404", `${call} ${tenant} ${id}`);
    t.strictSame(compareRows(before, await readRows(service.owner)), {});
  };
  for (const { tenant, batches } of stories)
    for (const wrong of tenants.filter((one) => one !== tenant))
      await isRefused(wrong, "void_batch", batches["ALLOCATED"]!.external_id);
  const generated = await service.owner.rows<{ tenant: string; event: string }>(
    "select tenant, event from report.event where event_type = 'batch.generated' and tenant like 'ten\\__1'",
  );
  t.ok(generated.length > 4);
  for (const { tenant, event } of generated) await isRefused(tenant, "replay_event", event);
});
