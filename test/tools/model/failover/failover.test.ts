// Checks the written model of a failover in every order, and that each of its safeguards is needed. Without Debian's
// spin and gcc, it is skipped.
import path from "node:path";
import t from "tap";
import { searchModel, skipWithoutSpin } from "../../../support/spin.ts";
import { useTemporaryFolder } from "../../../support/temporary-folder.ts";

const model = path.join(import.meta.dirname, "failover.pml");
const skip = skipWithoutSpin;

t.test("A failover loses no answer, and someone serves in the end, in any order", { skip }, async (t) => {
  const folder = useTemporaryFolder(t, "coupon-failover-");
  t.equal(await searchModel(model, { folder, name: "COMPLETE", optimize: "-O2" }), 0);
});

const safeguards = [
  "NO_ERROR",
  "NO_RETRY_BARRIER",
  "NO_READ_BARRIER",
  "NO_SYNC",
  "NO_NOTE",
  "NO_CATCH_UP",
  "NO_FENCE",
  "NO_REPAIR",
  "LATE_SETTING",
];
for (const name of safeguards)
  t.test(`With ${name} it does not`, { skip }, async (t) => {
    const folder = useTemporaryFolder(t, "coupon-failover-");
    t.equal(await searchModel(model, { folder, name, optimize: "-O0" }), 1);
  });
