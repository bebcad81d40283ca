// What administrators, background work and provisioning see and change: the rows of the named tenant and party, and no
// others. The rows of all tenants are compared before and after.
import t from "tap";
import { fingerprintKeys } from "../../src/crypto/key-fingerprint.ts";
import { sqlState } from "../../src/database/connect.ts";
import { merchant, party, template } from "../support/tenants.ts";
import { openWorkerSession } from "../support/worker-session.ts";
import { calls, global, testedElsewhere, valuesOf, type Numbers } from "./calls.ts";
import { pick, type Row } from "./books.ts";
import { addTwins, pairs, tellStory } from "./story.ts";
import { orderBatch, type Teller } from "./teller.ts";
import { declare, describeTenant, type Owner } from "./tenants.ts";
import { addChanges, findChanges, ownChanges, toTwin } from "./twin.ts";

let teller: Teller;
let worker: number;
let keys: string;
t.before(async () => {
  teller = await tellStory(t);
  for (const owner of teller.owners)
    owner.batches.pending = (await orderBatch({ teller, owner }, owner.template, 4)).batch;
  await addTwins(teller);
  ({ number: worker } = await openWorkerSession(t, teller.world.address));
  keys = fingerprintKeys(teller.world.keys);
});

const read = <Found = any>(sql: string, values: unknown[] = []) => teller.world.owner.rows<Found & object>(sql, values);
const changesOf = (act: () => Promise<unknown>) => findChanges(teller.world.owner, act);
const rowsOf = (found: object[]) => found.map((row) => Object.values(row)).sort();

t.test("Every function of admin and jobs is called for several owners, or acts for none", async (t) => {
  const functions = await read<{ name: string }>(
    `select distinct pronamespace::regnamespace || '.' || proname as name from pg_proc
     where pronamespace in ('admin'::regnamespace, 'jobs'::regnamespace) or proname = 'read_export_page'`,
  );
  const known = [...calls.map(([name]) => name), ...`${testedElsewhere} ${global}`.split(/\s+/)];
  t.strictSame(new Set(known), new Set(functions.map(({ name }) => name)));
});

async function findNumbers({ tenant, distributorParty, batches }: Owner): Promise<Numbers> {
  const [row] = await read<Numbers>(
    `select p.tenant_id as "tenantId", p.party_id as "partyId",
            (select b.batch_id from core.batch b where b.external_id = $3) as pending,
            (select b.batch_id from core.batch b where b.external_id = $4) as released,
            (select b.batch_id from core.batch b where b.external_id = $5) as "unreleasedNumber",
            (select count(*)::int from rules.sequenced_event e
             where e.tenant_id = p.tenant_id and e.party_id = p.party_id) as count,
            array(select d.event_id::text from core.delivery d
                  where d.tenant_id = p.tenant_id and d.party_id = p.party_id
                  -- as a round sends them
                  order by row_number() over (partition by d.is_behind order by d.event_seq)
                    * case when d.is_behind then 1.5 else 1 end) as events
     from core.party p join core.tenant t using (tenant_id) where t.external_id = $1 and p.external_id = $2`,
    [tenant, distributorParty, batches.pending, batches.released, batches.unreleased],
  );
  return row!;
}

// The placeholder of an argument. An ID of an event is text.
function placeOf(name: string, value: unknown, index: number): string {
  const place = `$${index + 1}`;
  if (Array.isArray(value)) return `${place}::text[]::uuid[]`;
  if (name === "event") return `rules.format_id('evt', ${place}::text::uuid)`;
  return /^[[{]/.test(String(value)) ? `${place}::text::jsonb` : place;
}

for (const [index, [name, args, changes = "", answer]] of calls.entries())
  t.test(`${index + 1}. ${name} changes rows of the named owner only`, async (t) => {
    for (const both of pairs(teller.owners)) {
      const all = await Promise.all(both.map(async (owner) => ({ owner, ...(await findNumbers(owner)) })));
      const expected = all.map(({ owner, count }) => ownChanges(owner, changes.replace("others", String(count - 2))));
      const act = async () => {
        for (const { owner, ...numbers } of all) {
          const values: Record<string, any> = { ...valuesOf(owner, numbers), worker, keys };
          const names = args.split(" ");
          const given = names.map((one) => (one in values ? values[one] : one));
          const places = names.map((one, index) => placeOf(one, given[index], index)).join(", ");
          const found = await read<{ row: any }>(`select to_jsonb(r) as row from ${name}(${places}) r`, given);
          if (answer === undefined) continue;
          // The columns that are expected, or a value.
          const shown = found.map(({ row }, nth) => (row instanceof Object ? fitRow(row, values[answer][nth]) : row));
          t.strictSame(shown, values[answer], `${name} for ${owner.tenant}, side ${owner.side}`);
        }
      };
      t.strictSame(await changesOf(act), addChanges(expected), "only rows of the owners");
    }
  });

const fitRow = (row: Row, wanted: Row) => pick(row, Object.keys(wanted).join(" "));

t.test("A webhook is due if it has due deliveries itself", async (t) => {
  await read("update core.webhook set paused_until = null");
  for (const owner of teller.owners) {
    const { tenantId: tenant, partyId: party } = await findNumbers(owner);
    await read(
      `update core.delivery set next_attempt_at = clock_timestamp()
              + case when (tenant_id, party_id) = ($1, $2) then interval '-1 hour' else interval '1 hour' end`,
      [tenant, party],
    );
    const due = await read("select tenant_id, party_id from jobs.list_due_webhooks(100)");
    t.strictSame(rowsOf(due), [[tenant, party]]);
  }
});

const ofAll = (changes: (owner: Owner) => string) =>
  addChanges(teller.owners.map((owner) => ownChanges(owner, changes(owner))));

t.test("Locks lapse and coupons expire for each owner, and the events reach its feed and webhook", async (t) => {
  const { owners, world } = teller;
  const [first, twin] = [owners[0]!, owners[4]!];
  // The lock of a twin ends next after that of its tenant.
  await read(
    `update core.redemption set lock_expires_at = started_at + tenant_id * interval '1 microsecond'
     where status = 'LOCKED'`,
  );
  for (const [index, { tenant, coupons }] of owners.entries())
    await read("select admin.extend_coupon($1, $2, $3, 'why')", [tenant, coupons.issued!.id, `2020-01-0${index + 2}`]);
  const lapse = (limit: number) => changesOf(() => read("select jobs.lapse_locks($1)", [limit]));
  const lapsed = (count: number) => `coupon -${count} +${count}, redemption -${count} +${count}`;
  for (const owner of [first, twin]) t.strictSame(await lapse(1), ownChanges(owner, lapsed(1)), "one at a time");
  const left = ofAll((owner) => lapsed(owner === first || owner === twin ? 2 : 3));
  t.strictSame(await lapse(100), left);

  const expire = (limit: number) => changesOf(() => read("select jobs.expire_coupons($1)", [limit]));
  const expired = (count: number) => `coupon -${count} +${count}, event … -0 +${count}`;
  t.strictSame(await expire(1), ownChanges(first, expired(1)), "one at a time");
  const rest = ofAll((owner) => expired(owner === first ? 1 : 2));
  t.strictSame(await expire(100), rest);

  // In Variant A the feed is that of the tenant.
  const fed = (owner: Owner, count: number) => {
    const ofTenant = owner === first || owner === twin ? ", feed -1 +1, feed_page -0 +1" : "";
    const feed = owner.variant === "A" ? ofTenant : ", feed … -1 +1, feed_page … -0 +1";
    return `delivery … -0 +${count}${feed}`;
  };
  // Two expired coupons and two voided ones.
  const sequenced = ofAll((owner) => fed(owner, 4));
  t.strictSame(await changesOf(world.steps.sequence), sequenced);
  for (const owner of [first, owners[2]!]) {
    await read("select admin.void_coupon($1, $2, 'why')", [owner.tenant, owner.coupons.spare!.id]);
    t.strictSame(await changesOf(world.steps.sequence), ownChanges(owner, fed(owner, 1)));
  }
});

t.test("A batch that is over expires alone, although the twin has one with the same coupons", async (t) => {
  const { psql, owners } = teller;
  const owner = owners[2]!;
  const { released } = owner.batches;
  await psql.rows("update core.batch set valid_to = '2020-01-02' where external_id = $1", [released]);
  const coupons = await psql.rows<{ status: string }>(
    `update core.coupon c set valid_to = '2020-01-02' from core.batch b
     where (b.tenant_id, b.batch_id) = (c.tenant_id, c.batch_id) and b.external_id = $1 returning c.status`,
    [released],
  );
  const count = coupons.filter(({ status }) => status === "ISSUED").length;
  t.ok(count > 4, `${count} coupons`);
  const expected = ownChanges(owner, `batch -1 +1, coupon -${count} +${count}, event … -0 +${count}`);
  t.strictSame(await changesOf(() => read("select jobs.expire_coupons(100)")), expected);
});

t.test("Old events are pruned from the feed of their owner", async (t) => {
  const { psql, owners } = teller;
  const [owner, twin] = [owners[2]!, owners[6]!];
  // All of one feed, and the first page of the feed whose party has the same number in the twin.
  await psql.rows(
    `update core.feed_page f set sequenced_at = now() - interval '9 days'
     from core.party p join core.tenant t using (tenant_id)
     where (f.tenant_id, f.party_id) = (p.tenant_id, p.party_id)
       and ((t.external_id, p.external_id) = ($1, $2)
         or (t.external_id, p.external_id, f.first_position) = ($3, $4, 1))`,
    [owner.tenant, owner.distributorParty, twin.tenant, twin.distributorParty],
  );
  const pruned = { ...ownChanges(owner, "feed_page … -4 +0"), ...ownChanges(twin, "feed_page … -1 +0") };
  t.strictSame(await changesOf(() => read("select jobs.prune_feed(8, 100)")), pruned);
});

t.test("A call that names the wrong tenant is refused, and so is an event for a party without a webhook", async (t) => {
  const { owners, world, books } = teller;
  // In the twins the makers have webhooks, under the numbers that the makers have everywhere.
  for (const owner of owners.slice(4)) {
    const parties = [party(owner.makerParty, { webhook: { url: "http://127.0.0.1:9" } })];
    await world.apply(declare(owner, { parties }));
  }
  // A twin has coupons with the same IDs.
  const wrongCalls = owners.flatMap(({ variant, coupons }) => {
    const others = new Set(owners.filter((one) => one.variant !== variant).map((one) => one.tenant));
    return [...others].map((wrong) => ["void_coupon", wrong, coupons.spare!.id]);
  });
  const generated = books
    .of("event")
    .filter(({ event_type, tenant }) => event_type === "batch.generated" && tenant.endsWith("1"));
  const replays = generated.map(({ tenant, event }) => ["replay_event", tenant, event]);
  const act = async () => {
    for (const [name, tenant, id] of [...wrongCalls, ...replays]) {
      const refused = world.admin.rows(`select admin.${name}($1, $2, 'why')`, [tenant, id]).catch(sqlState);
      t.equal(await refused, "CP404", `${name} ${tenant} ${id}`);
    }
  };
  t.strictSame(await changesOf(act), {});
});

// From here on: provisioning where tenants have rows with the same keys. It changes what is declared, in the tenant
// that is declared.

const firsts = () => teller.owners.filter(({ distributorParty }) => distributorParty === "pty_d1");
const apply = (owner: Owner, more: object) => () => teller.world.apply(declare(owner, more));

t.test("Provisioning changes rows of the declared merchant and party only", async (t) => {
  for (const owner of firsts()) {
    const change = async (more: object, expected: string) =>
      t.strictSame(await changesOf(apply(owner, more)), ownChanges(owner, `${expected}, audit -0 +1`));
    const stores = (terminal: string) => [
      { external_id: "S0", terminals: [terminal] },
      { external_id: "S1", terminals: ["T1"] },
    ];
    const changeMerchant = (more: object, expected: string) =>
      change({ merchants: [merchant("mch_1", "pty_s1", { stores: stores("T0"), ...more })] }, expected);
    await apply(owner, { merchants: [merchant("mch_1", "pty_s1", { delegates: ["pty_p"], stores: stores("T0") })] })();
    await apply(owner, { merchants: [merchant("mch_2", "pty_s2", { delegates: ["pty_p"], stores: stores("T0") })] })();
    await changeMerchant({ delegates: ["pty_p", "pty_m2"] }, "merchant_delegate -0 +1");
    await changeMerchant({ stores: stores("T7") }, "terminal -1 +1");
    const fewer = { delegates: ["pty_m2"], stores: stores("T7").slice(0, 1) };
    await changeMerchant(fewer, "merchant_delegate -1 +0, store -1 +0, terminal -1 +0");
    for (const text of ["a new secret of a webhook of 32 bytes", "one more secret of a webhook of 32 bytes"]) {
      const webhook = { url: "http://127.0.0.1:7", secret: `whsec_${btoa(text)}` };
      const parties = [party("pty_d1", { name: `pty_d1 of ${owner.variant}`, webhook })];
      await change({ parties }, "webhook … -1 +1, replaced_secret … -0 +1");
    }
  }
});

t.test("Provisioning changes rows of the declared tenant only", async (t) => {
  for (const owner of firsts()) {
    const { tenant, variant } = owner;
    const described = describeTenant(variant);
    const own: any = tenant.endsWith("1") ? described : toTwin(described);
    own.name = "renamed";
    for (const each of [...own.parties, ...own.templates]) each.name = "renamed";
    for (const each of own.merchants)
      Object.assign(each, { delegates: ["pty_m1"], stores: [{ external_id: "S9", terminals: ["T9"] }] });
    const named = "tenant -1 +1, party -8 +8, template -5 +5";
    const ofMerchants = "merchant_delegate -2 +3, store -3 +3, terminal -3 +3";
    // A twin has the sealed secrets of its tenant.
    const resealed = variant === "A" ? "credential -3 +3, " : "credential -8 +8, ";
    // The tenant, its parties, merchants and templates, and the credentials that are sealed again.
    const audited = 1 + 8 + 3 + 5 + (tenant.endsWith("1") ? 0 : variant === "A" ? 3 : 8);
    const expected = `${tenant.endsWith("2") ? resealed : ""}${named}, ${ofMerchants}, audit -0 +${audited}`;
    t.strictSame(await changesOf(() => teller.world.apply({ tenants: [own] })), ownChanges(owner, expected), tenant);
  }
});

t.test("A template with a batch keeps its terms; names of another tenant are unknown", async (t) => {
  const far = firsts().at(-1)!;
  await apply(far, { name: "renamed", parties: [party("pty_far")], merchants: [merchant("mch_far", "pty_s1")] })();
  for (const owner of firsts()) {
    const changed = template("tpl_1", "pty_m1", { discount: { type: "percent", percent: 9 } });
    const wrong: [object, RegExp][] = [[{ templates: [changed] }, /the template has a batch/]];
    if (owner !== far) {
      wrong.push([
        { templates: [template("tpl_far", "pty_m1", { merchants: ["mch_far"] })] },
        /no such merchant in this/,
      ]);
      wrong.push([{ merchants: [merchant("mch_1", "pty_s1", { delegates: ["pty_far"] })] }, /no such party/]);
    }
    for (const [more, message] of wrong) {
      const refuse = () => t.rejects(apply(owner, more)(), { message }, `${owner.tenant} ${message}`);
      t.strictSame(await changesOf(refuse), {}, "nothing changes");
    }
  }
});

t.test("A template without a batch can change, although another tenant has batches of the same number", async (t) => {
  const { world } = teller;
  const parties = [party("pty_m1")];
  const declareSame = (amount: number) => {
    const templates = [template("tpl_same", "pty_m1", { discount: { type: "fixed", amount } })];
    return world.apply({ tenants: [{ id: "ten_same", name: "same", variant: "B", parties, templates }] });
  };
  // As tpl_1 of the other tenants.
  await world.owner.rows("alter table core.template alter column template_id restart with 21");
  await declareSame(5);
  const changes = { "ten_same audit": "-0 +1", "ten_same template": "-1 +1" };
  t.strictSame(await changesOf(() => declareSame(6)), changes);
});
