// Provisioning where tenants have rows with the same keys: it changes what is declared, in the tenant that is declared.
import t from "tap";
import type { Applied } from "../../src/commands/apply.ts";
import { credentialPurpose, open, webhookPurpose } from "../../src/crypto/seal.ts";
import { acme } from "../support/applying.ts";
import { merchant, party, template } from "../support/tenants.ts";
import { addTwins, tellStory } from "./story.ts";
import type { Teller } from "./teller.ts";
import { declare, describeTenant, type Owner } from "./tenants.ts";
import { findChanges, ownChanges, toTwin } from "./twin.ts";

let teller: Teller;
let firsts: Owner[];
t.before(async () => {
  teller = await tellStory(t);
  await addTwins(teller);
  firsts = teller.owners.filter(({ distributorParty }) => distributorParty === "pty_d1");
});

const changesOf = (act: () => Promise<unknown>) => findChanges(teller.world.owner, act);
const apply = (owner: Owner, more: object) => () => teller.world.apply(declare(owner, more));

t.test("Provisioning changes rows of the declared merchant and party only", async (t) => {
  for (const owner of firsts) {
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
  for (const owner of firsts) {
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
    const expected = `${tenant.endsWith("2") ? resealed : ""}${named}, ${ofMerchants}, audit -0 +1`;
    t.strictSame(await changesOf(() => teller.world.apply({ tenants: [own] })), ownChanges(owner, expected), tenant);
  }
});

t.test("A template with a batch keeps its terms; names of another tenant are unknown", async (t) => {
  const far = firsts.at(-1)!;
  await apply(far, { name: "renamed", parties: [party("pty_far")], merchants: [merchant("mch_far", "pty_s1")] })();
  for (const owner of firsts) {
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

t.test("A file with several new tenants returns the changes and the generated secrets of each", async (t) => {
  const { world } = teller;
  const declareNew = (id: string, more: object = {}) => {
    const credentials = [{ access_key: `ak_${id}`, party: "pty_maker" }];
    return { ...acme({ credentials, ...more }).tenants[0], id };
  };
  await world.owner.rows("alter table core.template alter column template_id restart with 900");
  const { changed, tenants, generated_secrets } = (await world.apply({
    tenants: [declareNew("ten_new1"), declareNew("ten_new2", { merchants: [] })],
  })) as Applied;
  const common = { parties: ["pty_maker", "pty_shop"], templates: ["tpl_1"] };
  t.strictSame(tenants, [
    { ...common, id: "ten_new1", merchants: ["mch_1"], credentials: ["ak_ten_new1"], changed: 10 },
    { ...common, id: "ten_new2", merchants: [], credentials: ["ak_ten_new2"], changed: 6 },
  ]);
  t.equal(changed, 16);
  const stored = await world.owner.rows<{ tenant: string; credential: Uint8Array; webhook: Uint8Array }>(
    `select t.external_id as tenant, c.sealed_secret as credential, w.sealed_secret as webhook
     from core.tenant t join core.credential c using (tenant_id) join core.webhook w using (tenant_id)
     where t.external_id like 'ten\\_new_' order by 1`,
  );
  const expected = { credentials: [] as object[], webhooks: [] as object[] };
  for (const { tenant, credential, webhook } of stored) {
    const [access_key, party] = [`ak_${tenant}`, "pty_maker"];
    const secret = open(world.keys, credentialPurpose(access_key), credential);
    expected.credentials.push({ access_key, secret });
    expected.webhooks.push({ tenant, party, secret: open(world.keys, webhookPurpose(tenant, party), webhook) });
  }
  t.strictSame(generated_secrets, expected);
  t.equal(stored.length, 2);
});
