// Provisioning: everything that a file declares exists afterwards, or nothing of it.
import t from "tap";
import type { Applied } from "../../src/commands/apply.ts";
import { open, webhookPurpose } from "../../src/crypto/seal.ts";
import { fits } from "../support/fits.ts";
import { newRequestId, startService } from "../support/service.ts";
import { acme, stored } from "../support/applying.ts";
import { createClient } from "../support/signing-client.ts";
import { document } from "../support/tenants.ts";

t.test("a generated secret is shown once and signs; applying the file again changes nothing", async (t) => {
  const service = await startService(t);
  const first = (await service.apply(acme())) as Applied;
  const declared = { id: "ten_acme", parties: ["pty_maker", "pty_shop"], merchants: ["mch_1"] };
  // The tenant, 2 parties and a webhook, a merchant with its delegate, store and terminal, a template, a credential.
  t.strictSame(
    [first.changed, first.tenants],
    [10, [{ ...declared, templates: ["tpl_1"], credentials: ["ak_acme"], changed: 10 }]],
  );
  const [credential] = first.generated_secrets.credentials;
  fits(t, credential, { access_key: "ak_acme", secret: /^[\w-]{43}$/ });
  const [webhook] = first.generated_secrets.webhooks;
  fits(t, webhook, { tenant: "ten_acme", party: "pty_maker", secret: /^whsec_/ });
  const [sealed] = await service.owner.rows<{ sealed_secret: Uint8Array }>("select sealed_secret from core.webhook");
  t.equal(open(service.keys, webhookPurpose("ten_acme", "pty_maker"), sealed!.sealed_secret), webhook!.secret);
  const caller = createClient({ url: service.url, accessKey: "ak_acme", secret: credential!.secret });
  const created = await caller.post("/v1/batches", { request_id: newRequestId(), template: "tpl_1", total_count: 1 });
  t.equal(created.status, 200, created.text);

  const before = await stored(service.owner);
  const second = (await service.apply(acme())) as Applied;
  fits(t, second, { changed: 0, generated_secrets: { credentials: [], webhooks: [] } });
  t.equal(await stored(service.owner), before);
  fits(t, await service.apply(document), { changed: 0 }, "also with given secrets");
});

t.test("a time zone can change; an omitted one stays unchanged, and is UTC for a new party", async (t) => {
  const service = await startService(t);
  const parties = (more: object) =>
    acme({
      parties: [
        { id: "pty_maker", name: "Maker", ...more },
        { id: "pty_shop", name: "Shop" },
      ],
    });
  await service.apply(parties({ time_zone: "Europe/Berlin" }));
  fits(t, await service.apply(parties({ time_zone: "Asia/Tokyo" })), { changed: 1 });
  fits(t, await service.apply(parties({})), { changed: 0 });
  t.strictSame(
    [
      ...(await service.owner.rows(
        `select p.external_id as party, p.time_zone
         from core.party p
         join core.tenant t using (tenant_id)
         where t.external_id = 'ten_acme'
         order by 1`,
      )),
    ],
    [
      { party: "pty_maker", time_zone: "Asia/Tokyo" },
      { party: "pty_shop", time_zone: "UTC" },
    ],
  );
});

t.test("a secret given later replaces the generated one", async (t) => {
  const service = await startService(t);
  await service.apply(acme());
  const secret = "a secret of more than thirty-two characters";
  fits(t, await service.apply(acme({ credentials: [{ access_key: "ak_acme", party: "pty_maker", secret }] })), {
    changed: 1,
  });
  const answer = await createClient({ url: service.url, accessKey: "ak_acme", secret }).get("/v1/batches/bat_none");
  fits(t, answer.json, { code: "NOT_FOUND" });
});

t.test("the database holds no secret in plain text", async (t) => {
  const service = await startService(t);
  const secret = "a secret of more than thirty-two characters";
  await service.apply(acme({ credentials: [{ access_key: "ak_acme", party: "pty_maker", secret }] }));
  const [row] = await service.owner.rows<{ text: string }>(
    "select string_agg(encode(sealed_secret || secret_hash, 'escape'), ' ') as text from core.credential",
  );
  t.notMatch(row!.text, "thirty-two");
});
