// `npm run rehearse` runs the tests of this folder with more data and for longer: upgrade, backup and restore.
import { spawnSync } from "node:child_process";
import { runProgram } from "../../src/common/program.ts";

await runProgram(async () => {
  const { status } = spawnSync(
    "npm",
    ["test", "--", "test/operations", "--timeout=1200", "--reporter=tap", ...process.argv.slice(2)],
    {
      stdio: "inherit",
      env: { ...process.env, COUPON_REHEARSAL: "long" },
    },
  );
  process.exit(status ?? 1);
});
