// Provisioning where tenants have rows with the same keys: it changes what is declared, in the tenant that is declared.
import t from "tap";
import type { Applied } from "../../../src/commands/apply.ts";
import { credentialPurpose, open, webhookPurpose } from "../../../src/crypto/seal.ts";
import { acme } from "../../support/applying.ts";
import { ownersDocument } from "../../support/owners-document.ts";
import { startOwners, type Owners } from "../../support/start-owners.ts";
import { merchant, party, template } from "../../support/tenants.ts";
import { compareRows, findChanges, nameTables, readRows, toTwin } from "../../support/twin.ts";

let owners: Owners;
t.before(async () => {
  owners = await startOwners(t);
});

const tenants = ["ten_a1", "ten_a2", "ten_b1", "ten_b2"];
const changesOf = (act: () => Promise<unknown>) => findChanges(owners.service.owner, act);

t.test("Provisioning changes rows of the declared merchant and party only", async (t) => {
  const stores = (terminal: string) => [
    { external_id: "S0", terminals: [terminal] },
    { external_id: "S1", terminals: ["T1"] },
  ];
  const [mch1, mch2] = [merchant("mch_1", "pty_s1"), merchant("mch_2", "pty_s2")];
  for (const tenant of tenants) {
    const variant = tenant.startsWith("ten_a") ? "A" : "B";
    const apply = (more: object) => () =>
      owners.service.apply({ tenants: [{ id: tenant, name: tenant, variant, ...more }] });
    await apply({ merchants: [{ ...mch2, delegates: ["pty_p"] }] })();
    const merchantIs = (more: object) => apply({ merchants: [{ ...mch1, ...more }] });
    const [audit, delegates] = ["-0 +1", ["pty_p", "pty_m2"]];
    t.strictSame(
      await changesOf(merchantIs({ delegates, stores: stores("T0") })),
      nameTables(tenant, { audit, merchant_delegate: "-0 +1" }),
    );
    t.strictSame(
      await changesOf(merchantIs({ delegates, stores: stores("T7") })),
      nameTables(tenant, { audit, terminal: "-1 +1" }),
    );
    t.strictSame(
      await changesOf(merchantIs({ delegates: ["pty_m2"], stores: stores("T7").slice(0, 1) })),
      nameTables(tenant, { audit, merchant_delegate: "-1 +0", store: "-1 +0", terminal: "-1 +0" }),
    );
    const webhook = { url: "http://127.0.0.1:7", secret: `whsec_${btoa("a new secret of a webhook of 32 bytes")}` };
    t.strictSame(
      await changesOf(apply({ parties: [{ id: "pty_d1", name: "pty_d1", webhook }] })),
      nameTables(tenant, { audit, webhook: "-1 +1", replaced_secret: "-0 +1" }),
    );
    const renewed = { ...webhook, secret: `whsec_${btoa("one more secret of a webhook of 32 bytes")}` };
    t.strictSame(
      await changesOf(apply({ parties: [{ id: "pty_d1", name: "pty_d1", webhook: renewed }] })),
      nameTables(tenant, { audit, webhook: "-1 +1", replaced_secret: "-0 +1" }),
    );
  }
});

t.test("Provisioning changes rows of the declared tenant only", async (t) => {
  for (const tenant of tenants) {
    const variant = tenant.startsWith("ten_a") ? "A" : "B";
    const document = ownersDocument(variant, "http://127.0.0.1:8");
    const own = tenant.endsWith("1") ? document : toTwin(document);
    for (const one of [...own.parties, ...own.templates]) one.name = "renamed";
    for (const one of own.merchants)
      Object.assign(one, { delegates: ["pty_m1"], stores: [{ external_id: "S9", terminals: ["T9"] }] });
    const changes = await changesOf(() => owners.service.apply({ tenants: [own] }));
    const expected = {
      audit: "-0 +1",
      merchant_delegate: "-2 +2",
      party: "-7 +7",
      store: "-3 +2",
      template: "-4 +4",
      tenant: "-1 +1",
      terminal: "-3 +2",
      webhook: "-2 +2",
      replaced_secret: "-0 +1",
      // A twin has secrets of its tenant, and templates for the other merchant.
      ...(tenant.endsWith("2") && { credential: variant === "A" ? "-2 +2" : "-7 +7", template_merchant: "-2 +2" }),
    };
    t.strictSame(changes, nameTables(tenant, expected));
  }
});

t.test("A template with a batch keeps its terms; names of another tenant are unknown", async (t) => {
  const { service } = owners;
  const declare = (tenant: string, more: object) =>
    service.apply({
      tenants: [{ id: tenant, name: tenant, variant: tenant.startsWith("ten_a") ? "A" : "B", ...more }],
    });
  await declare("ten_b2", { parties: [party("pty_far")], merchants: [merchant("mch_far", "pty_s1")] });
  for (const tenant of tenants) {
    const changed = template("tpl_1", "pty_m1", { distributor: "pty_d1", discount: { type: "fixed", amount: 9 } });
    const far = template("tpl_far", "pty_m1", { merchants: ["mch_far"] });
    const wrong: [object, RegExp][] = [[{ templates: [changed] }, /the template has a batch/]];
    if (tenant !== "ten_b2") {
      wrong.push([{ templates: [far] }, /no such merchant in this tenant/]);
      wrong.push([{ merchants: [merchant("mch_1", "pty_s1", { delegates: ["pty_far"] })] }, /no such party/]);
    }
    for (const [document, message] of wrong) {
      const before = await readRows(service.owner);
      await t.rejects(declare(tenant, document), { message }, `${tenant} ${message}`);
      t.strictSame(compareRows(before, await readRows(service.owner)), {}, "nothing changes");
    }
  }
});

t.test("A template without a batch can change, although another tenant has batches of the same number", async (t) => {
  const { service } = owners;
  const [row] = await service.owner.rows<{ number: number }>(
    `select x.template_id as number from core.template x join core.tenant t using (tenant_id)
     where t.external_id = 'ten_a1' and x.external_id = 'tpl_1'`,
  );
  await service.owner.rows(`alter table core.template alter column template_id restart with ${row!.number}`);
  const apply = (amount: number) => () =>
    service.apply({
      tenants: [
        {
          id: "ten_b1",
          name: "b1",
          variant: "B",
          templates: [template("tpl_same", "pty_m1", { discount: { type: "fixed", amount } })],
        },
      ],
    });
  await apply(5)();
  t.strictSame(await changesOf(apply(6)), nameTables("ten_b1", { audit: "-0 +1", template: "-1 +1" }));
});

t.test("A file with several new tenants returns the changes and the generated secrets of each", async (t) => {
  const { service } = owners;
  const declare = (id: string, more: object = {}) => {
    const credentials = [{ access_key: `ak_${id}`, party: "pty_maker" }];
    return { ...acme({ credentials, ...more }).tenants[0], id };
  };
  const applied = (await service.apply({
    tenants: [declare("ten_new1"), declare("ten_new2", { merchants: [] })],
  })) as Applied;
  const declared = { parties: ["pty_maker", "pty_shop"], templates: ["tpl_1"] };
  t.strictSame(
    [applied.changed, applied.tenants],
    [
      16,
      [
        { ...declared, id: "ten_new1", merchants: ["mch_1"], credentials: ["ak_ten_new1"], changed: 10 },
        { ...declared, id: "ten_new2", merchants: [], credentials: ["ak_ten_new2"], changed: 6 },
      ],
    ],
  );
  const stored = await service.owner.rows<{ tenant: string; credential: Uint8Array; webhook: Uint8Array }>(
    `select t.external_id as tenant, c.sealed_secret as credential, w.sealed_secret as webhook
     from core.tenant t join core.credential c using (tenant_id) join core.webhook w using (tenant_id)
     where t.external_id like 'ten\\_new_' order by 1`,
  );
  t.strictSame(applied.generated_secrets, {
    credentials: stored.map(({ tenant, credential }) => {
      const access_key = `ak_${tenant}`;
      return { access_key, secret: open(service.keys, credentialPurpose(access_key), credential) };
    }),
    webhooks: stored.map(({ tenant, webhook }) => {
      const party = "pty_maker";
      return { tenant, party, secret: open(service.keys, webhookPurpose(tenant, party), webhook) };
    }),
  });
  t.equal(stored.length, 2);
});
