// `npm run rehearse`: upgrade, backup and restore as in the tests, with more data and for longer.
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
