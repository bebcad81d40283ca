// A program that writes a numbered line to its log every few milliseconds, until it is killed. It reports each failed
// write on standard error.
import { createLog } from "../../src/common/log.ts";
import { runProgram } from "../../src/common/program.ts";

await runProgram(async () => {
  const log = createLog("info");
  process.stdout.on("error", (error) => console.error(error.message));
  let number = 0;
  setInterval(() => log.info({ number: (number += 1), padding: "-".repeat(500) }), 5);
});
