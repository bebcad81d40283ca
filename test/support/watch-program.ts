// Loaded into each program that a test starts, before the program itself (watch-answers.ts says how). It writes down
// the answers of the program; the test checks them. So the program needs no validator, and a kill -9 loses no line.
import { openSync, writeSync } from "node:fs";
import { watchServers } from "./watch-servers.ts";

let file: number | null = null;

watchServers((answered) => {
  file ??= openSync(process.env["COUPON_TEST_ANSWERS"]!, "a");
  writeSync(file, `${JSON.stringify(answered)}\n`);
});
