// A program that writes a numbered line to its log every few milliseconds, until it is killed.
import { createLog } from "../../src/common/log.ts";
import { runProgram } from "../../src/common/program.ts";

await runProgram(async () => {
  const log = createLog("info");
  let number = 0;
  setInterval(() => log.info({ number: (number += 1), padding: "-".repeat(500) }), 5);
});
