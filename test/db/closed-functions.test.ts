// docs/security.md gives DBAs a command that takes PostgreSQL's advisory locks and large objects from all logins. The
// service must work without them.
import t from "tap";
import { connect, openSession, sqlState } from "../../src/database/connect.ts";
import { read, readBlocks } from "../docs/markdown.ts";
import { sequenceEvents } from "../support/sequence-events.ts";
import { newRequestId, startService } from "../support/service.ts";

const closed = [
  "select pg_try_advisory_lock(1)",
  "select lo_create(0)",
  "select lo_creat(-1)",
  "select lo_from_bytea(0, '')",
];
const command = readBlocks(read("docs/security.md")).find(({ text }) => text.startsWith("do $$"));

t.test("After the command no login takes advisory locks or makes large objects, and the service works", async (t) => {
  const service = await startService(t);
  const worker = connect(service.address, { name: "coupon test worker", role: "coupon_worker", max: 1 });
  t.teardown(() => worker.end());
  const superuser = openSession(service.address, { name: "psql" });
  t.teardown(() => superuser.end());
  await superuser.run(command!.text);

  for (const role of ["coupon_api", "coupon_worker", "coupon_report", "coupon_admin"]) {
    const session = openSession(service.address, { name: "coupon test", role });
    t.teardown(() => session.end());
    // 42501: insufficient privilege.
    for (const text of closed) t.equal(await session.rows(text).catch(sqlState), "42501", `${role}: ${text}`);
  }

  // Minting joins the workers and looks whether one is gone.
  const { codes } = await service.makeBatch(service.as("ak_a"), "tpl_fixed", 1);
  const body = { request_id: newRequestId(), coupon: codes[0], merchant: "mch_a" };
  t.equal((await service.as("ak_a").post("/v1/coupons/redeem", body, { idempotencyKey: newRequestId() })).status, 200);
  await sequenceEvents(worker);
  await service.admin.rows("select admin.note_restore('rehearsal')");
  t.equal((await service.as("ak_a").get("/v1/events")).json.events.length, 1);
});
