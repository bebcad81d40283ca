// Workers as programs. When one of them is killed or frozen in the middle of its work, the other one goes on within
// seconds, although the leases of the first run for 30 and 60 s.
import t, { type Test } from "tap";
import { openSession } from "../../src/database/connect.ts";
import type { Session } from "../../src/database/types.ts";
import { checkComplete, find, submit } from "../support/minting.ts";
import { hang, startReceiver, take } from "../support/receiver.ts";
import { startService, type Running } from "../support/service.ts";
import { listDeliveries, subscribe } from "../support/subscribers.ts";
import { waitUntil } from "../support/wait-until.ts";
import { checkResumes, startWorker, type Worker } from "../support/workers.ts";

async function holderOf({ owner }: Pick<Running, "owner">, table: "batch" | "webhook"): Promise<number | null> {
  const column = table === "batch" ? "mint_worker" : "worker";
  const rows = await owner.rows<{ worker: number }>(
    `select ${column} as worker from core.${table} where ${column} is not null`,
  );
  return rows[0]?.worker ?? null;
}

// Waits until one of the workers holds a claim, and stops that one with the signal. Returns the other one.
async function stopHolder(
  service: Pick<Running, "owner">,
  workers: Worker[],
  table: "batch" | "webhook",
  signal: NodeJS.Signals,
): Promise<{ stopped: Worker; other: Worker }> {
  const number = await waitUntil("a claim", () => holderOf(service, table), { everyMs: 5 });
  const stopped = workers.find((worker) => worker.number === number)!;
  stopped.program.kill(signal);
  return { stopped, other: workers.find((worker) => worker !== stopped)! };
}

// Coupons can only be written after the commit of the returned session, so the claim of a batch lasts until then.
async function blockMinting(t: Test, service: Running): Promise<Session> {
  const blocker = openSession(service.address, { name: "psql" });
  t.teardown(() => blocker.end());
  await blocker.run("begin; lock table core.coupon in share mode");
  return blocker;
}

// A claim may come and go between two looks.
const hasGoneOn = async (service: Running, batch: string, { number }: Worker): Promise<boolean> =>
  (await holderOf(service, "batch")) === number || (await find(service, batch)).status === "COMPLETED";

t.test("minting goes on when its worker is killed, and the count is exact", async (t) => {
  const service = await startService(t);
  const workers = [await startWorker(t, service), await startWorker(t, service)];
  const blocker = await blockMinting(t, service);
  const id = await submit(service, 20_000);
  const { other } = await stopHolder(service, workers, "batch", "SIGKILL");
  await blocker.run("commit");
  await checkResumes(t, "minting", () => hasGoneOn(service, id, other));
  await waitUntil("the batch", async () => (await find(service, id)).status === "COMPLETED");
  await checkComplete(t, service, id, 20_000);
});

t.test("minting goes on when its worker freezes, and what the worker does later has no effect", async (t) => {
  const service = await startService(t);
  const workers = [await startWorker(t, service), await startWorker(t, service)];
  const blocker = await blockMinting(t, service);
  const id = await submit(service, 20_000);
  const { stopped, other } = await stopHolder(service, workers, "batch", "SIGSTOP");
  await blocker.run("commit");
  await checkResumes(t, "minting", () => hasGoneOn(service, id, other));
  stopped.program.kill("SIGCONT");
  await waitUntil("the batch", async () => (await find(service, id)).status === "COMPLETED");
  await checkComplete(t, service, id, 20_000);
});

t.test("delivery goes on when its worker is killed in the middle of a request", async (t) => {
  const receiver = await startReceiver(t, hang);
  const fixture = await subscribe(t, [receiver.url]);
  const workers = [await startWorker(t, fixture.service), await startWorker(t, fixture.service)];
  const [event] = await fixture.happen("pty_s1", 1);
  await waitUntil("the request", () => receiver.received.length === 1);
  receiver.answer = take;
  await stopHolder(fixture.service, workers, "webhook", "SIGKILL");
  await checkResumes(t, "delivery", () => receiver.received.length > 1);
  t.strictSame(
    receiver.received.map(({ id }) => id),
    [event, event],
  );
  await waitUntil("the record", async () => (await listDeliveries(fixture)).length === 0);
});

t.test("the feed goes on when a worker is killed in the middle of a step", async (t) => {
  const service = await startService(t);
  const { id } = await service.makeBatch(service.as("ak_a"), "tpl_fixed", 3_000);
  const blocker = openSession(service.address, { name: "psql" });
  t.teardown(() => blocker.end());
  const victim = await startWorker(t, service);
  const isDrained = async () => {
    const rows = await service.owner.rows(
      "select from rules.event where event_seq > (select high_seq from core.sequencer)",
    );
    return rows.length === 0;
  };
  await waitUntil("an empty queue", isDrained);
  await blocker.run("begin; lock table core.feed_page in exclusive mode");
  await service.admin.rows("select admin.void_batch('ten_a', $1, 'to have events')", [id]);
  const isInStep = async () => {
    const text = "select from pg_stat_activity where application_name = 'coupon sequence' and wait_event_type = 'Lock'";
    return (await blocker.rows(`${text} and datname = current_database()`)).length === 1;
  };
  await waitUntil("a step", isInStep);
  await startWorker(t, service);
  victim.program.kill("SIGKILL");
  await blocker.run("commit");
  await checkResumes(t, "the feed", isDrained);
  const [feed] = await service.owner.rows(
    `select count(*)::int, count(distinct f.event_id)::int as different
     from rules.feed_event f join rules.event e using (tenant_id, event_id) where e.event_type = 'coupon.voided'`,
  );
  t.strictSame({ ...feed }, { count: 3_000, different: 3_000 });
});
