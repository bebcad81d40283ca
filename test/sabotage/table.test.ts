// The table of sabotages must follow the source. `npm run sabotage` runs it; this test only checks that it can.
import { existsSync } from "node:fs";
import path from "node:path";
import t from "tap";
import { applyEdits, root } from "../support/copy.ts";
import { sabotages } from "./table.ts";

for (const { name, edits, tests } of sabotages) {
  t.test(`${name}: its edits apply to the source, and its tests exist`, (t) => {
    t.doesNotThrow(() => applyEdits(root, edits));
    t.strictSame(
      tests.filter((file) => !existsSync(path.join(root, file))),
      [],
    );
    t.end();
  });
}

t.test("every sabotage has its own name", (t) => {
  t.equal(new Set(sabotages.map(({ name }) => name)).size, sabotages.length);
  t.end();
});
