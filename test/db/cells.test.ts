// A tenant that another cell serves, or that is on its way to one: this cell refuses its calls for now, does none of
// its work, and patches nothing of it. Other tenants notice nothing.
import t from "tap";
import { ConfigError } from "../../src/config/config.ts";
import { openSession } from "../../src/database/connect.ts";
import { readVersion } from "../../src/database/read-version.ts";
import { refuseOtherVersion } from "../../src/migration/version.ts";
import { asAdmin, useDatabase } from "../support/database.ts";
import { fillEveryTable, type EveryTable } from "../support/every-table.ts";
import { fits } from "../support/fits.ts";
import { readState } from "../support/state.ts";

let filled: EveryTable;
t.before(async () => {
  filled = await fillEveryTable(t);
});

// What the scenario's worker, which has the number 1, finds and takes of the tenant's work.
const keys = "(select jsonb_object_agg(version, encode(fingerprint, 'hex')) from core.master_key)";
const takes = {
  batches: `from jobs.list_due_batches(99, ${keys}) where tenant_id = 1`,
  recalls: "from jobs.list_due_recalls(99) where tenant_id = 1",
  webhooks: "from jobs.list_due_webhooks(99) where tenant_id = 1",
  statements: "from jobs.list_due_statements(99) where tenant_id = 1",
  batch: `from core.batch b, jobs.lease_batch(1, b.batch_id, 1, gen_random_uuid(), 1, ${keys}) l where b.tenant_id = 1`,
  recall: "from core.batch b where b.tenant_id = 1 and jobs.lease_recall(1, b.batch_id, 1, gen_random_uuid())",
  deliveries: `from core.webhook w, jobs.lease_deliveries(1, w.party_id, 1, gen_random_uuid(), 9) d
    where w.tenant_id = 1`,
};

// Makes some of each kind due.
const prepare = `
  set local session_replication_role = replica;
  update core.webhook set holder = null, paused_until = null, disabled_at = null;
  update core.batch set mint_lease_until = null, mint_holder = null, mint_worker = null;
  update core.statement
  set ready_at = null, detail_bytes = null, detail_sha256 = null, summary_rows = null, summary_bytes = null,
      summary_sha256 = null`;

/** Of each, whether there is any. Takes nothing for good. */
async function takeWork(): Promise<Record<string, boolean>> {
  const found: Record<string, boolean> = {};
  for (const [name, query] of Object.entries(takes)) {
    await filled.session.run(`begin; ${prepare}`);
    found[name] = (await filled.session.rows(`select ${query}`)).length > 0;
    await filled.session.run("rollback");
  }
  return found;
}

const of = (isThere: boolean) => Object.fromEntries(Object.keys(takes).map((name) => [name, isThere]));

for (const [state, change, isHome] of [
  ["is on its way to another cell", "fence = 1", true],
  ["lives in another cell", "home = 2, left_at = now()", false],
] as const)
  t.test(`A tenant that ${state}`, async (t) => {
    const { world, session } = filled;
    const { till } = world.a;
    t.strictSame(await takeWork(), of(true), "its work is due");
    await session.run(`update core.tenant set ${change} where external_id = 'ten_a'`);
    t.teardown(() => session.run("update core.tenant set fence = null, home = 1, left_at = null"));

    const before = await readState(world.owner, { withRequests: true });
    fits(t, await till.get("/v1/batches"), { status: 503, json: { code: "UNAVAILABLE" } });
    const batch = { request_id: "moving", template: "tpl_fixed", total_count: 1 };
    fits(t, await till.post("/v1/batches", batch), { status: 503, json: { code: "UNAVAILABLE" } });
    t.strictSame(await takeWork(), of(false));
    const patch = "select admin.suspend_batch(external_id, 'why') from core.batch where tenant_id = 1";
    await t.rejects(world.owner.rows(patch), { code: "CP409", message: /^ten_a (lives in cell 2|is moving)/ });
    t.strictSame(await readState(world.owner, { withRequests: true }), before, "nothing changes");

    t.equal((await world.b.maker.get("/v1/batches")).status, 200, "another tenant is served");
    const rows = async (query: string) => (await world.owner.rows(query)).length;
    t.equal(await rows("select from gate.find_credential('ak_a')"), isHome ? 1 : 0, "its access key");
    t.equal(await rows("select where gate.has_tenant(1)"), isHome ? 1 : 0);
    await session.run("select set_config('coupon.session', encode(sha256('another cookie'), 'hex'), false)");
    t.equal((await session.rows("select from portal.find_credential()")).length, isHome ? 1 : 0, "its portal");
    t.equal(await rows("select where (console.read_session(sha256('another cookie'))).name = 'ten_a'"), isHome ? 1 : 0);
    if (!isHome) {
      const link = "select rules.format_id('lnk', link_id) from core.portal_link limit 1";
      t.equal(await rows(`select where console.open_portal(sha256('new'), (${link})) is null`), 1, "its link");
    }
    await session.run("begin; select console.end_session(sha256('another cookie')); rollback");
    t.equal(await rows("select from report.tenant where tenant = 'ten_a'"), isHome ? 1 : 0);
    t.equal(await rows("select from report.tenant where tenant = 'ten_b'"), 1);
    const found = await world.admin.rows(
      `select left(id, 4) as id
       from admin.find_local(array['ten_a', 'ten_b', 'ten_c', 'ak_a', 'ak_c', 'ak_maker'] || array(
         select batch from report.batch where tenant = 'ten_a' limit 1)) id
       order by id`,
    );
    const ids = found.map(({ id }) => id);
    t.strictSame(ids, isHome ? ["ak_a", "ak_m", "bat_", "ten_", "ten_"] : ["ak_m", "ten_"]);
  });

t.test("An attempt moves all of its tenants or none", async (t) => {
  const { session } = filled;
  await session.run("begin");
  t.teardown(() => session.run("rollback"));
  const [row] = await session.rows<{ attempt: number }>(
    "select admin.close_tenants(array['ten_a', 'ten_b'], 2, 'why') as attempt",
  );
  const { attempt } = row!;
  await session.rows("select admin.mark_drained($1)", [attempt]);
  const moving = await session.rows<{ tenant: string }>("select tenant from admin.list_moving(array['ten_b'])");
  t.strictSame(
    moving.map(({ tenant }) => tenant),
    ["ten_a", "ten_b"],
  );
  const only = { code: "CP409", message: `attempt ${attempt} moves other tenants too` };
  await session.run("savepoint before");
  await t.rejects(session.rows("select admin.release_tenants($1, array['ten_b'], 2)", [attempt]), only);
  await session.run("rollback to before");
  await session.rows("select admin.open_tenants($1)", [attempt]);
  // After a restore to before a split.
  await session.rows("select admin.release_tenants(admin.close_tenants('{ten_b}', 2, 'restored'), '{ten_b}', 2)");
  const [home] = await session.rows("select home from core.tenant where external_id = 'ten_b'");
  t.strictSame({ ...home! }, { home: 2 });
  await session.run("rollback to before; set local coupon.cell = '2'");
  await session.run("update core.tenant set home = 2 where external_id not in ('ten_a', 'ten_b')");
  await session.run("set local coupon.cell = '3'");
  await t.rejects(session.rows("select admin.take_tenants($1, array['ten_b'])", [attempt]), only);
});

// Other work that is due, of whichever tenant, and the alerts that it raises while nobody does it.
const metrics =
  `delivery_waiting delivery_lag webhook_disabled mint_batches mint_lag recall_batches recall_lag day_overdue
  day_lag statement_waiting statement_lag lock_lag`.split(/\s+/);
const overdue = `
  ${prepare};
  insert into core.webhook (tenant_id, party_id, url, sealed_secret, secret_hash, disabled_at)
  select tenant_id, party_id + 999, url, sealed_secret, secret_hash, now() from core.webhook;
  update core.delivery set parked_at = null, next_attempt_at = now() - interval '1 hour';
  update core.ledger_book set open_on = open_on - 9;
  update core.redemption set lock_expires_at = now() - interval '1 hour' where status = 'LOCKED';
  update core.batch
  set valid_from = '2020-01-01', valid_to = '2020-01-02', expired_through = 0, created_at = '2020-01-01',
      recall_finished_at = null, recalled_through = 0, recall_voided_count = 0;
  update core.coupon set valid_from = '2020-01-01', valid_to = '2020-01-02';
  update core.coupon_extension set valid_to = '2020-01-02';
  update core.stuck_work set tried_at = now() - interval '1 minute';
  set local session_replication_role = origin`;

t.test("Work of a tenant that has left for another cell rests, and raises no alert", async (t) => {
  const { session, world } = filled;
  const steps = ["expire_coupons", "lapse_locks", "try_stuck_work", "close_days"];
  const readOverdue = async (change: string) => {
    await session.run(`begin; ${overdue}; ${change}`);
    const [row] = await session.rows<Record<string, number>>("select * from jobs.read_metrics()");
    const found: Record<string, boolean> = Object.fromEntries(metrics.map((name) => [name, row![name]! > 0]));
    found["stuck"] = (await session.rows("select from jobs.list_stuck_work()")).length > 0;
    for (const step of steps) {
      const [{ done }] = (await session.rows(`select jobs.${step}(99) as done`)) as [{ done: number }];
      found[step] = done > 0;
    }
    await session.run("rollback");
    return found;
  };
  const names = [...metrics, "stuck", ...steps];
  const all = (isThere: boolean) => Object.fromEntries(names.map((name) => [name, isThere]));
  const before = await readState(world.owner);
  t.strictSame(await readOverdue("select"), all(true));
  t.strictSame(await readOverdue("update core.tenant set fence = 1"), all(true), "while it moves, all counts as ours");
  t.strictSame(await readOverdue("update core.tenant set home = 2, left_at = now()"), all(false));
  t.strictSame(await readState(world.owner), before);
});

t.test("A database joins the cell that its server says, and numbers its tenants from there", async (t) => {
  const address = await useDatabase(t);
  const setCell = (number: number) =>
    asAdmin(address, (admin) => admin.rows(`alter database "${address.database}" set coupon.cell = '${number}'`));
  const open = () => {
    const session = openSession(address, { name: "coupon test" });
    t.teardown(() => session.end());
    return session;
  };
  await setCell(3);
  const session = open();
  const other = { message: /the database is of cell 1, and coupon\.cell of its server is 3/ };
  await t.rejects(refuseOtherVersion(readVersion(session.rows)), new ConfigError("").constructor, "no program starts");
  await t.rejects(refuseOtherVersion(readVersion(session.rows)), other);
  await t.rejects(session.rows("select admin.join_cell(2)"), { code: "CP409", message: /says that it is cell 3/ });
  const insert = `insert into core.tenant (external_id, name, variant, amount_unit)
    values ('ten_x', 'x', 'A', 'major') returning tenant_id, home`;
  await t.rejects(session.rows("select from gate.find_credential('ak_x')"), { code: "57P03" }, "503 and not 401");
  await t.rejects(session.rows(insert), { code: "23514", message: "a tenant of cell 3 cannot have the number 1" });

  await session.rows("select admin.join_cell(3)");
  fits(t, await readVersion(session.rows), { cell: 3, server_cell: 3 });
  t.strictSame([...(await session.rows(insert))], [{ tenant_id: 2_000_001, home: 3 }]);
  await session.rows("select admin.join_cell(3)");

  await setCell(4);
  await t.rejects(open().rows("select admin.join_cell(4)"), { code: "CP409", message: /tenants of another cell/ });
});
