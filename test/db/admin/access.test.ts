// The administrator's patches of access: delegates, credentials and the hand-over of codes.
import t from "tap";
import { connect } from "../../../src/database/connect.ts";
import { createDatabase } from "../../support/database.ts";
import { fits } from "../../support/fits.ts";
import { everyFunctionIsCalled, startPatches, type Patches } from "../../support/patches.ts";
import { tenants } from "../../support/tenants.ts";
import type { Running } from "../../support/service.ts";

let patches: Patches;
let service: Running;
t.before(async () => {
  patches = await startPatches(t, tenants);
  ({ service } = patches);
});

t.test("add_delegate and remove_delegate take effect with the next call", async (t) => {
  const { patch, isAudited, isRefused, refusesBadArguments } = patches;
  const query = async () => {
    const { codes } = await service.makeBatch(service.as("ak_maker"), "tpl_b", 1);
    return (await service.as("ak_other").post("/v1/coupons/query", { coupon: codes[0], merchant: "mch_b" })).status;
  };
  const unknown = { 0: ["ten_none", "ten_a"], 1: ["mch_none", "mch_a"], 2: ["pty_none", "pty_a"] };
  t.equal(await query(), 404);
  await refusesBadArguments(t, "add_delegate", ["ten_b", "mch_b", "pty_other"], unknown);
  await patch("add_delegate", "ten_b", "mch_b", "pty_other", "new contract");
  await isAudited(
    t,
    { action: "add_delegate", target: "mch_b", reason: "new contract", tenant: "ten_b" },
    { party: "pty_other" },
  );
  t.equal(await query(), 200);
  await t.resolves(patch("add_delegate", "ten_b", "mch_b", "pty_other", "adding twice is no error"));
  await refusesBadArguments(t, "remove_delegate", ["ten_b", "mch_b", "pty_other"], unknown);
  await patch("remove_delegate", "ten_b", "mch_b", "pty_other", "contract ended");
  await isAudited(
    t,
    { action: "remove_delegate", target: "mch_b", reason: "contract ended", tenant: "ten_b" },
    { party: "pty_other" },
  );
  t.equal(await query(), 404);
  await isRefused(t, "CP404", "remove_delegate", "ten_b", "mch_b", "pty_other", "no longer a delegate");
});

t.test("revoke_credential takes effect with the next call and cannot be undone", async (t) => {
  const { patch, isAudited, refusesBadArguments } = patches;
  const second = service.as("ak_a_second");
  t.equal((await second.get("/v1/batches/bat_none")).status, 404);
  await refusesBadArguments(t, "revoke_credential", ["ak_a_second"], { 0: ["ak_none", ""] });
  const at = await patch<Date>("revoke_credential", "ak_a_second", "leaked");
  await isAudited(t, { action: "revoke_credential", target: "ak_a_second", reason: "leaked", tenant: "ten_a" });
  fits(t, await second.get("/v1/batches/bat_none"), { status: 401, json: { code: "UNAUTHENTICATED" } });
  t.strictSame(await patch("revoke_credential", "ak_a_second", "again"), at, "the first time stays");
  await service.apply({ tenants: [tenants[0]] });
  t.equal((await second.get("/v1/batches/bat_none")).status, 401, "provisioning does not bring it back");
});

t.test(
  "open_export and read_export_page hand out the codes of a batch until destroy_codes destroys them",
  async (t) => {
    const { patch, isAudited, isRefused, called } = patches;
    const { json } = await patches.post("/v1/batches", { merchant: undefined, template: "tpl_fixed", total_count: 5 });
    const pending = json.batch.external_id as string;
    for (const name of ["open_export", "destroy_codes"]) {
      const rest = name === "open_export" ? [true] : ["why"];
      await isRefused(t, "CP404", name, "bat_none", ...rest);
      await isRefused(t, "CP409", name, pending, ...rest);
    }
    await service.mint();
    await isRefused(t, "CP409", "open_export", pending, false);
    await patch("open_export", pending, true);
    await isAudited(
      t,
      { action: "export_codes", target: pending, reason: null, tenant: "ten_a" },
      { status: "COMPLETED", total_count: 5 },
    );

    called.add("read_export_page");
    const [batch] = await service.owner.rows<{ tenant_id: number; batch_id: number }>(
      "select tenant_id, batch_id from core.batch where external_id = $1",
      [pending],
    );
    const { tenant_id, batch_id } = batch!;
    const page = async (tenant: number, after: number) => {
      const rows = await patches.admin.rows<{ number: number }>(
        "select number from admin.read_export_page($1, $2, $3, 2)",
        [tenant, batch_id, after],
      );
      return rows.map(({ number }) => number);
    };
    t.strictSame(await page(tenant_id, 0), [1, 2]);
    t.strictSame(await page(tenant_id, 2), [3, 4]);
    t.strictSame(await page(tenant_id, 4), [5]);
    t.strictSame(await page(tenant_id, 5), []);
    t.strictSame(await page(tenant_id + 1, 0), []);

    await patches.refusesBadArguments(t, "destroy_codes", [pending], { 0: ["bat_none", ""] });
    const at = await patch<Date>("destroy_codes", pending, "printed");
    await isAudited(t, { action: "destroy_codes", target: pending, reason: "printed", tenant: "ten_a" });
    t.strictSame(await patch("destroy_codes", pending, "again"), at, "a second call changes nothing");
    t.equal((await service.owner.rows("select from core.audit where action = 'destroy_codes'")).length, 1);
    await isRefused(t, "CP409", "open_export", pending, true);
  },
);

t.test("has_tenants is false on a fresh installation and true once tenants exist", async (t) => {
  const { address, drop } = await createDatabase();
  const fresh = connect(address, { name: "coupon test", role: "coupon_admin", max: 1 });
  fits(t, await fresh.rows("select admin.has_tenants() as answer"), [{ answer: false }]);
  await fresh.end();
  await drop();
  t.equal(await patches.patch("has_tenants"), true);
});

t.test("Every function of this file was called", (t) => everyFunctionIsCalled(t, patches, "access"));
