// Checks the written model of a split in every order, and that each of its safeguards is needed. Without Debian's spin
// and gcc, it is skipped.
import path from "node:path";
import t from "tap";
import { searchModel, skipWithoutSpin } from "../../../support/spin.ts";
import { useTemporaryFolder } from "../../../support/temporary-folder.ts";

const model = path.join(import.meta.dirname, "split.pml");
const skip = skipWithoutSpin;

t.test("A split has one home at any moment and loses no accepted call, in any order", { skip }, async (t) => {
  const folder = useTemporaryFolder(t, "coupon-split-");
  t.equal(await searchModel(model, { folder, name: "COMPLETE", optimize: "-O2" }), 0);
});

for (const name of ["NO_DRAIN", "NO_MARK", "NO_ATTEMPT", "NO_LOCAL", "NO_ORDER"])
  t.test(`With ${name} it does not`, { skip }, async (t) => {
    const folder = useTemporaryFolder(t, "coupon-split-");
    t.equal(await searchModel(model, { folder, name, optimize: "-O0" }), 1);
  });
