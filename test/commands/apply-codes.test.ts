// No text of a provisioning file may contain a coupon code: it would be stored, and requests could not name it.
import t from "tap";
import { ApplyError } from "../../src/commands/apply.ts";
import { fits } from "../support/fits.ts";
import { document } from "../support/tenants.ts";
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
  fits(t, await applyTenant({ credentials: [{ access_key: "ak_more", secret }] }), { changed: 1 });
});

t.test("A file is searched to its end, however many texts look like the beginning of a code", async (t) => {
  const service = await startService(t);
  const [tenant] = structuredClone(document).tenants as [any];
  // 45 places in each of them could begin a code: 9,000 in all, more than a request may have.
  const skus = Array.from({ length: 200 }, (_, index) => `${"1".repeat(60)}u${index}`);
  const templates = [...tenant.templates, { ...tenant.templates[0], id: "tpl_skus", skus }];
  fits(t, await service.apply({ tenants: [{ ...tenant, templates }] }), { changed: 1 });
  const rows = await service.owner.rows<{ skus: string[] }>(
    "select skus from report.template where template = 'tpl_skus'",
  );
  t.strictSame(rows[0]!.skus.toSorted(), skus.toSorted());
});
