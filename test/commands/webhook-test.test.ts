// npm run webhooks -- test, and what status and the log say of failures.
import type { ServerResponse } from "node:http";
import t from "tap";
import { chooseCommand } from "../../src/common/command.ts";
import { webhooks } from "../../src/commands/webhooks.ts";
import { fits } from "../support/fits.ts";
import { recordWaits } from "../support/record-delays.ts";
import { startReceiver, status } from "../support/receiver.ts";
import { readState } from "../support/state.ts";
import { startDeliverer, subscribe, tenant, type Subscribed } from "../support/subscribers.ts";
import { waitUntil } from "../support/wait-until.ts";

async function runTest({ service }: Subscribed, ...args: string[]): Promise<string> {
  const { command, args: rest } = chooseCommand(webhooks, ["test", tenant, ...args]);
  return command.read(rest)({ database: service.admin, keys: service.keys });
}

t.test("test sends a marked event, waits for its attempt, and changes nothing else", async (t) => {
  const receiver = await startReceiver(t);
  const fixture = await subscribe(t, [receiver.url, receiver.url]);
  const deliverer = startDeliverer(fixture, fixture.worker);
  const readRest = async () => {
    const {
      test_delivery: _1,
      delivery_attempt: _2,
      webhook: _3,
      audit: _4,
      ...rest
    } = await readState(fixture.service.owner);
    return rest;
  };
  await fixture.happen("pty_s1", 1);
  await deliverer.drain();
  receiver.received.length = 0;
  const before = await readRest();
  for (const [args, type] of [
    [["pty_s1"], "coupon.redeemed"],
    [["pty_s1", "batch.generated"], "batch.generated"],
  ] as const) {
    const running = runTest(fixture, ...args);
    await waitUntil("the test", async () => (await deliverer.listDue()).length > 0);
    await deliverer.drain();
    const { id, headers, body } = receiver.received.pop()!;
    t.match(await running, new RegExp(`^${id}: HTTP 204 after \\d+ ms$`));
    t.strictSame([headers["webhook-test"], JSON.parse(body).event_type], ["true", type]);
    const audits = await fixture.service.owner.rows(
      "select action, target, details from report.audit where details ->> 'event' = $1",
      [id],
    );
    t.strictSame(
      { ...audits[0] },
      { action: "test_webhook", target: "pty_s1", details: { event: id, event_type: type } },
    );
    const log = chooseCommand(webhooks, ["log", tenant, "pty_s1"]);
    const shown = await log.command.read(log.args)({ database: fixture.service.admin, keys: fixture.service.keys });
    t.match(shown, new RegExp(`${id} +1 +204 +\\d+ +- +${type}$`, "m"), "the log shows the attempt");
  }
  t.strictSame(await readRest(), before);
  t.equal(receiver.received.length, 0);
});

t.test("test fails with the reason if the receiver does, or if it cannot be sent", async (t) => {
  const receiver = await startReceiver(t);
  const fixture = await subscribe(t, [receiver.url]);
  const deliverer = startDeliverer(fixture, fixture.worker);
  for (const [code, answer] of [
    [503, status(503)],
    [300, status(300)],
    [99, (response: ServerResponse) => response.socket!.end("HTTP/1.1 099 Odd\r\ncontent-length: 0\r\n\r\n")],
  ] as const) {
    receiver.answer = answer;
    const message = new RegExp(`^evt_\\w{26}: HTTP ${code} after \\d+ ms$`);
    const running = t.rejects(runTest(fixture, "pty_s1"), { message });
    await waitUntil("the test", async () => (await deliverer.listDue()).length > 0);
    await deliverer.drain();
    await running;
  }
  const before = await readState(fixture.service.owner);
  await t.rejects(runTest(fixture, "pty_maker"), { message: `tenant ${tenant} has no party pty_maker with a webhook` });
  await t.rejects(runTest(fixture, "pty_s1", "coupon.minted"), { message: /^TYPE must be one of coupon.redeemed, / });
  t.strictSame(await readState(fixture.service.owner), before);
  await fixture.service.admin.rows("select admin.disable_webhook($1, 'pty_s1', 'why')", [tenant]);
  await t.rejects(runTest(fixture, "pty_s1"), { message: "the webhook of pty_s1 is disabled: enable it first" });
  t.equal((await fixture.service.owner.rows("select from core.test_delivery")).length, 0);
});

t.test("test gives up after 30 s if no worker sends it", async (t) => {
  const fixture = await subscribe(t, ["http://127.0.0.1:9/"]);
  const waits = recordWaits(t, (ms) => (ms === 200 ? 0 : ms));
  const message = /^evt_\w{26} still waits after 30 s: does `npm run work` run, and is the webhook not paused\?$/;
  await t.rejects(runTest(fixture, "pty_s1"), { message });
  t.equal(waits.filter((ms) => ms === 200).length, 150);
});

t.test("a line of the log counts what failed and what was parked, and a success has none", async (t) => {
  const receiver = await startReceiver(t);
  const fixture = await subscribe(t, [receiver.url]);
  const deliverer = startDeliverer(fixture, fixture.worker);
  const [first, second] = await fixture.happen("pty_s1", 3);
  await fixture.service.owner.rows(
    "update core.delivery set attempt_count = 9 where rules.format_id('evt', event_id) = $1",
    [first],
  );
  receiver.answer = (response, { id }) => response.writeHead(id === second ? 204 : 500).end();
  await deliverer.drain();
  fits(t, deliverer.log, [{ msg: "a webhook failed", failed: 2, parked: 1, error: "HTTP 500" }]);
  t.equal(deliverer.log.length, 1);
});

t.test("status and the log of the service say why a webhook fails, and no URL or secret", async (t) => {
  const receiver = await startReceiver(t, status(500));
  const fixture = await subscribe(t, [`${receiver.url}/hook?token=hidden`, receiver.url]);
  const deliverer = startDeliverer(fixture, fixture.worker);
  const health = () =>
    fixture.service.owner.rows<{ party: string; last_error: string; is_last: boolean; at: Date | null }>(
      `select party, last_error, last_failure_at as at,
         last_failure_at is not distinct from (
           select max(attempted_at) from report.delivery_attempt a
           where a.party = h.party and http_status is distinct from 204)
           as is_last
       from report.webhook_health h order by party`,
    );
  await fixture.happen("pty_s1", 3);
  receiver.answer = (response) => response.writeHead(500).end();
  await deliverer.drain();
  receiver.answer = (response) => response.destroy();
  await fixture.service.owner.rows("update core.delivery set next_attempt_at = clock_timestamp()");
  await deliverer.drain();
  const fields = { level: 40, tenant, party: "pty_s1", failed: 3, parked: 0, is_test: false, msg: "a webhook failed" };
  t.strictSame(
    deliverer.log.map(({ time: _, ...line }) => line),
    [
      { ...fields, error: "HTTP 500", attempt: 1 },
      { ...fields, error: "socket hang up", attempt: 2 },
    ],
  );
  t.notMatch(JSON.stringify(deliverer.log), /hidden|whsec/);
  t.strictSame(
    (await health()).map(({ party, last_error, is_last, at }) => [party, last_error, is_last, at === null]),
    [
      ["pty_s1", "socket hang up", true, false],
      ["pty_s2", null, true, true],
    ],
  );
  const { command, args } = chooseCommand(webhooks, ["status"]);
  const shown = await command.read(args)({ database: fixture.service.admin, keys: fixture.service.keys });
  t.match(shown, /^tenant .* last_failure_at +last_error +url\nten_w +pty_s1 .* \d{4}-\S+Z +socket hang up +http/);
  // A success after it does not hide it.
  receiver.answer = (response) => response.writeHead(204).end();
  await fixture.service.owner.rows("update core.delivery set next_attempt_at = clock_timestamp()");
  await deliverer.drain();
  fits(t, await health(), [{ last_error: "socket hang up", is_last: true }, { last_error: null }]);
  t.equal(deliverer.log.length, 2, "a success is no line of the log");

  receiver.answer = (response) => response.writeHead(410).end();
  await fixture.happen("pty_s2", 1);
  deliverer.log.length = 0;
  await deliverer.drain();
  fits(t, deliverer.log, [{ party: "pty_s2", error: "HTTP 410", msg: "a webhook answered 410 and is disabled" }]);
});
