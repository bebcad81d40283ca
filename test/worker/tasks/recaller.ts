// A worker that only recalls batches, for a test that kills many: it starts in a fraction of the time of `work`.
// COUPON_TEST_ADDRESS says where the database is. It sends a message when it is ready, and begins when it gets one.
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { Address } from "../../../src/config/database-address.ts";
import { connect, openSession } from "../../../src/database/connect.ts";
import { createRecaller } from "../../../src/worker/tasks/recall.ts";
import { joinWorkers } from "../../../src/worker/worker-session.ts";

process.send!("ready");
await once(process, "message");
const address = JSON.parse(process.env["COUPON_TEST_ADDRESS"]!) as Address;
const as = { name: "coupon test recaller", role: "coupon_worker" };
const database = connect(address, { ...as, max: 2 });
const number = await joinWorkers(openSession(address, as));
const never = new AbortController().signal;
const recaller = createRecaller({ database, getSession: () => ({ number, lost: never }), stopping: never });
for (;;) {
  for (const due of await recaller.listDue()) await recaller.recall(due);
  await sleep(20);
}
