// The limits of a provisioning file, one step inside and one step outside.
import t from "tap";
import { ApplyError } from "../../src/commands/apply.ts";
import { startService } from "../support/service.ts";
import { credential, template } from "../support/tenant-document.ts";

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
