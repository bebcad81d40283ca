// The limits of a provisioning file, one step inside and one step outside.
import t from "tap";
import { ApplyError } from "../../src/commands/apply.ts";
import { provisioning } from "../../src/commands/provisioning.ts";
import { startService } from "../support/service.ts";
import { credential, merchant, party, template } from "../support/tenants.ts";

t.test("An id has 1 to 40 characters after its prefix, a secret at least 32", async (t) => {
  const service = await startService(t);
  const isAccepted = (more: object) =>
    service.apply({ tenants: [{ id: "ten_a", name: "A", variant: "A", ...more }] }).then(
      () => true,
      (error: unknown) => {
        // The file is refused, not by the database.
        if (error instanceof ApplyError) return false;
        throw error;
      },
    );
  const withId = (length: number) => isAccepted({ templates: [template(`tpl_${"x".repeat(length)}`, "pty_a")] });
  t.strictSame([await withId(0), await withId(1), await withId(40), await withId(41)], [false, true, true, false]);
  const withSecret = (length: number) =>
    isAccepted({ credentials: [{ ...credential("ak_new"), secret: "s".repeat(length) }] });
  t.strictSame([await withSecret(31), await withSecret(32)], [false, true]);
});

t.test("The texts of a provisioning file have the limits that the documents name", (t) => {
  const base = { id: "ten_a", name: "A", variant: "A" };
  const isAccepted = (more: object) => provisioning.safeParse({ tenants: [{ ...base, ...more }] }).success;
  const text = (length: number) => "x".repeat(length);
  const webhook = (more: object) => ({
    parties: [party("pty_a", { webhook: { url: "https://a.example/", ...more } })],
  });
  const stores = (more: object) => ({ merchants: [merchant("mch_a", "pty_a", { stores: [{ ...more }] })] });
  const secretOfBytes = (bytes: number) => `whsec_${Buffer.alloc(bytes, 1).toString("base64")}`;
  const limits: Record<string, [shortest: number | null, longest: number, more: (length: number) => object]> = {
    "name of a tenant": [1, 200, (length) => ({ name: text(length) })],
    "name of a party": [1, 200, (length) => ({ parties: [party("pty_a", { name: text(length) })] })],
    "name of a merchant": [1, 200, (length) => ({ merchants: [merchant("mch_a", "pty_a", { name: text(length) })] })],
    "name of a template": [1, 200, (length) => ({ templates: [template("tpl_a", "pty_a", { name: text(length) })] })],
    sku: [1, 64, (length) => ({ templates: [template("tpl_a", "pty_a", { skus: [text(length)] })] })],
    store: [1, 64, (length) => stores({ external_id: text(length) })],
    terminal: [1, 64, (length) => stores({ external_id: "S", terminals: [text(length)] })],
    "access key": [1, 64, (length) => ({ credentials: [{ access_key: `ak_${text(length)}` }] })],
    secret: [32, 256, (length) => ({ credentials: [{ access_key: "ak_a", secret: text(length) }] })],
    "secret of a webhook, in bytes": [24, 64, (length) => webhook({ secret: secretOfBytes(length) })],
    "URL of a webhook": [null, 2048, (length) => webhook({ url: "https://a.example/".padEnd(length, "x") })],
  };
  for (const [name, [shortest, longest, more]] of Object.entries(limits)) {
    const accepted = shortest === null ? [longest] : [shortest, longest];
    const refused = shortest === null ? [longest + 1] : [shortest - 1, longest + 1];
    for (const length of accepted) t.ok(isAccepted(more(length)), `${name}: ${length}`);
    for (const length of refused) t.notOk(isAccepted(more(length)), `${name}: ${length}`);
  }
  t.end();
});
