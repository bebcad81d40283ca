// Deliveries by the running worker: concurrent subscribers, kill, stop, and secrets in logs.
import type { ServerResponse } from "node:http";
import { Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import t, { type Test } from "tap";
import { readConfig } from "../../../src/common/config.ts";
import { connect, openSession } from "../../../src/database/connect.ts";
import { createLog } from "../../../src/common/log.ts";
import { work } from "../../../src/work.ts";
import { fits } from "../../support/fits.ts";
import { exitCodeOf, startProgram } from "../../support/program.ts";
import { untilBlocked } from "../../support/race.ts";
import { recordDelays } from "../../support/record-delays.ts";
import { hang, startReceiver, status, take, type Receiver } from "../../support/receiver.ts";
import { listAttempts, listDeliveries, subscribe, type Subscribed } from "../../support/subscribers.ts";
import { waitFor, waitUntil } from "../../support/wait-until.ts";

const config = readConfig({ WEBHOOK_ALLOW: "127.0.0.0/8" });

async function startWork(t: Test, { service }: Subscribed, log = createLog("silent")) {
  const worker = await work({ address: service.address, keys: service.keys, config, log });
  t.teardown(() => worker.stop());
  return worker;
}

t.test("a hanging subscriber of ten delays none of the other nine", async (t) => {
  const receivers = await Promise.all(Array.from({ length: 10 }, () => startReceiver(t)));
  const fixture = await subscribe(
    t,
    receivers.map(({ url }) => url),
  );
  const parties = receivers.map((_, index) => `pty_s${index + 1}`);
  const [hanging, ...nine] = receivers as [Receiver, ...Receiver[]];
  hanging.answer = hang;
  await startWork(t, fixture);
  await fixture.happen("pty_s1", 1);
  await waitUntil("the hanging request", () => hanging.received.length === 1);
  const rounds = 3;
  for (let round = 0; round < rounds; round += 1) {
    await fixture.happen(parties, 1);
    const arrived = () => nine.every(({ received }) => received.length === round + 1);
    await waitUntil(`event ${round + 1} at each of the nine`, arrived);
  }
  // It has 15 s.
  t.strictSame(await listAttempts(fixture, "pty_s1"), [], "all that while the first request was hanging");
  t.strictSame(
    receivers.map(({ received }) => received.length),
    [1, ...nine.map(() => rounds)],
    "each event once",
  );
  // An event may have arrived before its delivery is recorded.
  const waiting = async () => new Set((await listDeliveries(fixture)).map(({ party }) => party));
  await waitUntil("the last deliveries", async () => (await waiting()).size <= 1);
  t.strictSame([...(await waiting())], ["pty_s1"], "only its own events wait");
});

t.test(
  "after a kill -9 between a 200 and its record, the next worker delivers again with the same webhook-id",
  async (t) => {
    const receiver = await startReceiver(t, status(200));
    const fixture = await subscribe(t, [receiver.url]);
    const { service } = fixture;
    const [event] = await fixture.happen("pty_s1", 1);
    // Recording the delivery waits for this row.
    const blocker = openSession(service.address, { name: "coupon test", role: "coupon_owner" });
    await blocker.run("begin");
    await blocker.rows("select from core.delivery for update");
    const victim = startProgram(service, "work");
    await waitUntil("the delivery", () => receiver.received.length === 1);
    await untilBlocked(service, 1);
    victim.kill("SIGKILL");
    await exitCodeOf(victim);
    // Ends its statement too, as if the machine were gone. Otherwise the database would finish it.
    const superuser = connect(service.address, { name: "coupon test", max: 1 });
    await superuser.rows(
      `select pg_terminate_backend(pid, 5000)
       from pg_stat_activity
       where datname = current_database() and application_name = 'coupon deliver'`,
    );
    await superuser.end();
    await blocker.run("rollback");
    await blocker.end();
    fits(t, await listDeliveries(fixture), [{ event, status: "WAITING", attempt_count: 0, is_due: true }]);
    const [lease] = await service.owner.rows<{ seconds: number }>(
      "select extract(epoch from lease_until - clock_timestamp())::float as seconds from core.webhook",
    );
    t.ok(lease!.seconds > 0 && lease!.seconds <= 60, "its lease is left, for at most a minute");
    await service.owner.rows("update core.webhook set lease_until = clock_timestamp()");
    await startWork(t, fixture);
    await waitUntil("the delivery to be recorded", async () => (await listDeliveries(fixture)).length === 0);
    t.strictSame(
      receiver.received.map(({ id }) => id),
      [event, event],
    );
    t.equal(receiver.received[1]!.body, receiver.received[0]!.body);
  },
);

t.test(
  "SIGTERM ends the program in time with exit code 0, even while a subscriber hangs, and leaves no lease",
  async (t) => {
    const receiver = await startReceiver(t, hang);
    const fixture = await subscribe(t, [receiver.url]);
    await fixture.happen("pty_s1", 8);
    const program = startProgram(fixture.service, "work");
    await waitUntil("4 requests", () => receiver.received.length === 4);
    program.kill("SIGTERM");
    // Less than the 15 s that the subscriber has.
    t.equal(await waitFor("the end of the program", exitCodeOf(program), { withinMs: 12_000 }), 0);
    t.equal((await fixture.service.owner.rows("select from core.webhook where holder is not null")).length, 0);
    t.equal(receiver.received.length, 4, "no request was started after it");
  },
);

t.test("while a stop waits for its last requests, others still see that the worker lives", async (t) => {
  const receiver = await startReceiver(t, hang);
  const fixture = await subscribe(t, [receiver.url]);
  const worker = await startWork(t, fixture);
  const psql = openSession(fixture.service.address, { name: "psql" });
  t.teardown(() => psql.end());
  let open = null as ServerResponse | null;
  receiver.answer = (response) => (open = response);
  await fixture.happen("pty_s1", 1);
  const response = await waitUntil("the request", () => open);
  const countSessions = async () => {
    const text = `select from pg_stat_activity
      where datname = current_database() and application_name = 'coupon worker session'`;
    return (await psql.rows(text)).length;
  };
  t.equal(await countSessions(), 1);
  // Requests may continue for a minute instead of 2 s, however slow the machine is.
  recordDelays(t, (ms) => (ms === 2_000 ? 60_000 : ms));
  const stopped = worker.stop();
  // Long enough for a session that ends too early.
  await sleep(1_000);
  t.equal(await countSessions(), 1);
  response.writeHead(204).end();
  await waitFor("the stop", stopped);
  await waitUntil("the end of the session", async () => (await countSessions()) === 0);
  t.strictSame(await listDeliveries(fixture), [], "the answer is recorded");
});

t.test("the log and the delivery log never contain a secret or a signature", async (t) => {
  const lines: string[] = [];
  const log = createLog("trace", new Writable({ write: (chunk, _, done) => (lines.push(String(chunk)), done()) }));
  const answers: Receiver["answer"][] = [take, status(500), status(410), (response) => response.destroy()];
  const receivers = await Promise.all(answers.map((answer) => startReceiver(t, answer)));
  const fixture = await subscribe(
    t,
    receivers.map(({ url }) => url),
  );
  // A secret sealed for another party does not open.
  await fixture.service.owner.rows(
    `update core.webhook w
     set sealed_secret = o.sealed_secret
     from core.webhook o, core.party p
     where (o.tenant_id, o.party_id) = (p.tenant_id, p.party_id)
       and p.external_id = 'pty_s1'
       and w.party_id = o.party_id + 3`,
  );
  await startWork(t, fixture, log);
  for (const party of ["pty_s1", "pty_s2", "pty_s3", "pty_s4"]) await fixture.happen(party, 1);
  await waitUntil(
    "a delivery to each",
    () =>
      receivers.slice(0, 3).every(({ received }) => received.length > 0) &&
      lines.some((line) => line.includes("does not open")),
  );
  const written =
    lines.join("") +
    JSON.stringify(
      await fixture.service.owner.rows(
        "select a::text, d::text from core.delivery_attempt a full join core.delivery d using (event_id)",
      ),
    );
  t.notMatch(written, /whsec_/);
  for (const secret of fixture.secrets.values()) t.notOk(written.includes(secret.slice(6)));
  for (const { received } of receivers) {
    for (const { headers } of received) t.notOk(written.includes(String(headers["webhook-signature"]).slice(3)));
  }
});
