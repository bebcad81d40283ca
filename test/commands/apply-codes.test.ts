// No text of a provisioning file may contain a coupon code: it would be stored, and requests could not name it.
import t from "tap";
import { ApplyError } from "../../src/commands/apply.ts";
import { document } from "../support/provisioning.ts";
import { startService } from "../support/service.ts";
import { inGroups } from "../support/spellings.ts";

t.test("A coupon code in any text of a file is refused, but not in a secret", async (t) => {
  const service = await startService(t);
  const { codes } = await service.makeBatch(service.as("ak_a"), "tpl_fixed", 1);
  const code = codes[0]!;
  const [tenant] = structuredClone(document).tenants as [any];
  const [template] = tenant.templates;
  const applyTenant = (more: object) => service.apply({ tenants: [{ ...tenant, ...more }] });
  const cases: [object, string][] = [
    [{ name: `Acme ${code}` }, "tenants.0.name"],
    [{ parties: [{ id: `pty_${code.toLowerCase()}`, name: "Maker" }] }, "tenants.0.parties.0.id"],
    [{ templates: [{ ...template, skus: ["A1", inGroups(code)] }] }, "tenants.0.templates.0.skus.1"],
  ];
  for (const [more, path] of cases) {
    const error = await applyTenant(more).then(
      () => null,
      (reason: unknown) => reason,
    );
    t.ok(error instanceof ApplyError, path);
    t.strictSame((error as ApplyError).issues, [{ path, message: "must not contain a coupon code" }]);
  }
  const secret = `0123456789abcdef-${code}`;
  t.match(await applyTenant({ credentials: [{ access_key: "ak_more", secret }] }), { changed: 1 });
});
