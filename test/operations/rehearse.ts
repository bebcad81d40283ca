// `npm run rehearse` runs the tests of this folder with more data and for longer: upgrade, backup and restore.
import { spawnSync } from "node:child_process";
import { defineCommand } from "../../src/common/command.ts";
import { runCommand } from "../../src/common/run-command.ts";

const command = defineCommand({
  name: "rehearse",
  about: "Rehearses upgrade, backup and restore under load, at length. The short form is part of npm test.",
  examples: [""],
  exitCodes: "0 all tests passed, 1 some failed",
  async run() {
    const args = ["test", "--", "test/operations", "--timeout=1200", "--reporter=tap"];
    const env = { ...process.env, COUPON_REHEARSAL: "long" };
    const { status } = spawnSync("npm", args, { stdio: "inherit", env });
    process.exit(status ?? 1);
  },
});

await runCommand("npm run rehearse", command);
