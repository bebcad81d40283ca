// npm run webhooks: what an operator sees of deliveries and does about them, and `listen`, a receiver to try them with.
import { createHmac, randomBytes } from "node:crypto";
import type { ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import t, { type Test } from "tap";
import { listen, startListener } from "../../src/commands/webhook-listener.ts";
import { webhooks } from "../../src/commands/webhooks.ts";
import { chooseCommand } from "../../src/command-line/command.ts";
import { ConfigError, readWebhookSecrets } from "../../src/config/config.ts";
import { formatHelp } from "../../src/command-line/help.ts";
import { batchKey, makeCode } from "../../src/crypto/coupon-code.ts";
import { fingerprintKeys } from "../../src/crypto/key-fingerprint.ts";
import { createAddressRule } from "../../src/worker/address-rule.ts";
import { createSender } from "../../src/worker/webhook-sender.ts";
import { fits } from "../support/fits.ts";
import { findFreePort } from "../support/listen.ts";
import { environmentOf, launch, runProgram } from "../support/program.ts";
import { startReceiver, status, take, verify } from "../support/receiver.ts";
import { recordWaits } from "../support/record-delays.ts";
import { readState } from "../support/state.ts";
import { listDeliveries, passTime, subscribe, tenant } from "../support/subscribers.ts";
import { waitUntil } from "../support/wait-until.ts";
import { createWorkerSteps, loopbackOnly } from "../support/worker-steps.ts";

const receiver = await startReceiver(t);
const fixture = await subscribe(t, [`${receiver.url}/1?token=hidden`, `${receiver.url}/2`]);
const { service } = fixture;
const { owner, admin, keys } = service;
const deliverer = createWorkerSteps(t, service, { session: fixture.session });

async function run(...args: string[]): Promise<string> {
  const { command, args: rest } = chooseCommand(webhooks, args);
  return command.read(rest)({ database: admin, keys });
}

const readRows = async (...args: string[]) =>
  JSON.parse(await run(...args, "--json")) as Record<string, string | number>[];
const column = (rows: Record<string, string | number>[], name: string) => rows.map((row) => row[name]);

// Delivers what waits, also what waits for its next attempt.
async function deliverAll(): Promise<void> {
  await passTime(fixture);
  await deliverer.deliverDue();
}

t.test("the token in a URL is for administrators only; an unknown tenant or party is named", async (t) => {
  fits(t, await readRows("status", tenant, "pty_s1"), [{ url: `${receiver.url}/1?token=hidden` }]);
  const [shown] = await owner.rows<{ texts: string }>(
    `select (select string_agg(w::text, '') from report.webhook_health w)
            || (select string_agg(p::text, '') from report.party p)
            || (select string_agg(a::text, '') from report.audit a) as texts`,
  );
  t.match(shown!.texts, `${receiver.url},`);
  t.notMatch(shown!.texts, /hidden|token/);
  for (const command of ["status", "parked", "log"]) {
    const missing = { message: `tenant ${tenant} has no party pty_none with a webhook` };
    await t.rejects(run(command, tenant, "pty_none"), missing);
    await t.rejects(run(command, "ten_none", "pty_none"), { message: "there is no tenant ten_none" });
  }
  const rows: [url: string, host: string][] = [
    ["HTTPS://user:pw@Host.example:8443/p?q#f", "HTTPS://Host.example:8443"],
    ["http://[::1]:9?x=@y", "http://[::1]:9"],
  ];
  for (const [url, host] of rows)
    fits(t, await owner.rows("select rules.format_url_host($1) as host", [url]), [{ host }]);
});

t.test("keys are compared, and status is shown, where nothing can be written, as on a standby", async (t) => {
  const session = await service.openPsql();
  await session.run("begin read only");
  const compareKeys = "select version, problem from rules.register_keys($1::text::jsonb)";
  t.strictSame([...(await session.rows(compareKeys, [fingerprintKeys(keys)]))], []);
  const wrong = JSON.stringify({ 1: "00".repeat(16) });
  t.equal((await session.rows(compareKeys, [wrong])).length, 1, "a wrong key is still refused");
  const { command, args } = chooseCommand(webhooks, ["status", "--json"]);
  t.match(await command.read(args)({ database: session, keys }), /pty_s1/);
  await session.run("rollback");
});

t.test("status, log and parked show deliveries; replay sends them again", async (t) => {
  receiver.answer = status(500);
  const events = await fixture.happen("pty_s1", 3);
  await deliverer.deliverDue();
  const health = /^tenant +party +health .*\nten_w +pty_s1 +failing +3 +3 +0 .*\nten_w +pty_s2 +healthy +0 +0 +0 /;
  t.match(await run("status"), health);
  t.match(await run("status", tenant, "pty_s2"), /^.*\nten_w +pty_s2 [^\n]*$/);
  fits(t, await readRows("status"), [
    { tenant, party: "pty_s1", health: "failing", waiting: 3, failing: 3, parked: 0, failures_24h: 3 },
    { tenant, party: "pty_s2", health: "healthy", waiting: 0, parked: 0, oldest_waiting_at: null },
  ]);
  const log = await run("log", tenant, "pty_s1");
  for (const event of events) t.match(log, new RegExp(`${event} +1 +500 +\\d+ +- +-$`, "m"));
  const attempts = await owner.rows<Record<string, unknown>>(
    `select attempted_at, event, attempt, http_status, duration_ms, error, null as test from report.delivery_attempt
     where party = 'pty_s1' order by attempted_at desc, event`,
  );
  t.strictSame(
    await readRows("log", tenant, "pty_s1"),
    attempts.map((row) => ({ ...row, attempted_at: (row["attempted_at"] as Date).toISOString() })),
  );
  t.equal(await run("parked", tenant, "--json"), "[]");

  await owner.rows("update core.delivery set attempt_count = 9");
  await deliverAll();
  const parked = await run("parked", tenant, "pty_s1");
  for (const event of events)
    t.match(parked, new RegExp(`ten_w +pty_s1 +${event} +coupon.voided +\\S+ +10 +\\S+ +HTTP 500$`, "m"));
  t.equal(await run("parked", tenant, "pty_s2"), "none");
  const newest = await readRows("log", tenant, "pty_s1", "--limit", "4");
  t.strictSame(column(newest, "attempt"), [10, 10, 10, 1], "newest first");
  const oldest = await readRows("parked", tenant, "--limit", "2");
  t.strictSame(column(oldest, "event"), events.slice(0, 2), "oldest first");

  receiver.answer = take;
  const sentAgain = async (...args: string[]) => {
    receiver.received.length = 0;
    const output = await run("replay", tenant, ...args, "--reason", "they lost it");
    await deliverer.deliverDue();
    t.equal(output, `${receiver.received.length} to be sent again`);
    return receiver.received.map(({ id }) => id).sort();
  };
  t.strictSame(await sentAgain("pty_s1", "--parked"), [...events].sort());
  t.equal(await run("parked"), "none");
  t.strictSame(await sentAgain(events[1]!), [events[1]]);
  const times = await owner.rows<{ at: Date }>(
    "select recorded_at as at from report.event where event = any ($1::text[]) order by event_seq",
    [events],
  );
  const [from, to] = [times[0]!.at.toISOString(), new Date(times[2]!.at.getTime() + 1).toISOString()];
  t.strictSame(await sentAgain("pty_s1", from, to), [...events].sort());
  t.strictSame(await sentAgain("pty_s1", "2020-01-01T00:00:00+05:45", "2020-01-02T00:00:00Z"), []);
});

t.test("disable parks waiting deliveries, enable starts new ones", async (t) => {
  receiver.received.length = 0;
  const events = await fixture.happen("pty_s1", 2);
  const change = (name: string, ...more: string[]) => run(name, tenant, "pty_s1", ...more, "--reason", "their wish");
  t.equal(await change("disable"), "disabled");
  await deliverer.deliverDue();
  t.equal(receiver.received.length, 0);
  const waiting = (await listDeliveries(fixture)).filter(({ event }) => events.includes(event));
  const isParked = { status: "PARKED", last_error: "disabled: their wish" };
  fits(t, waiting, [isParked, isParked]);
  t.match(await change("enable"), /^enabled/);
  t.equal(await change("replay", "--parked"), "2 to be sent again");
  await deliverer.deliverDue();
  t.strictSame(receiver.received.map(({ id }) => id).sort(), [...events].sort());
});

t.test("status and the log of the service say why a webhook fails, and no URL or secret", async (t) => {
  const health = () =>
    owner.rows<{ party: string; last_error: string; is_last: boolean; at: Date | null }>(
      `select party, last_error, last_failure_at as at,
         last_failure_at is not distinct from (
           select max(attempted_at) from report.delivery_attempt a
           where a.party = h.party and http_status is distinct from 204)
           as is_last
       from report.webhook_health h order by party`,
    );
  deliverer.log.length = 0;
  await fixture.happen("pty_s1", 3);
  receiver.answer = status(500);
  await deliverer.deliverDue();
  receiver.answer = (response) => response.destroy();
  await deliverAll();
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
  const shown = /^tenant .* last_failure_at +last_error +url\nten_w +pty_s1 .* \d{4}-\S+Z +socket hang up +http/;
  t.match(await run("status"), shown);
  // A success after it does not hide it.
  receiver.answer = take;
  await deliverAll();
  fits(t, await health(), [{ last_error: "socket hang up", is_last: true }, { last_error: null }]);
  t.equal(deliverer.log.length, 2, "a success is no line of the log");

  const [first, second] = await fixture.happen("pty_s1", 3);
  await owner.rows("update core.delivery set attempt_count = 9 where rules.format_id('evt', event_id) = $1", [first]);
  receiver.answer = (response, { id }) => response.writeHead(id === second ? 204 : 500).end();
  deliverer.log.length = 0;
  await deliverAll();
  t.equal(deliverer.log.length, 1);
  fits(t, deliverer.log, [{ msg: "a webhook failed", failed: 2, parked: 1, error: "HTTP 500" }]);

  receiver.answer = status(410);
  await fixture.happen("pty_s2", 1);
  deliverer.log.length = 0;
  await deliverer.deliverDue();
  fits(t, deliverer.log, [{ party: "pty_s2", error: "HTTP 410", msg: "a webhook answered 410 and is disabled" }]);
  await run("enable", tenant, "pty_s2", "--reason", "for the next tests");
});

// Runs `test` while the worker delivers.
async function runTest(...args: string[]): Promise<{ output: string } | { error: string }> {
  const running = run("test", tenant, ...args).then(
    (output) => ({ output }),
    ({ message }: Error) => ({ error: message }),
  );
  await waitUntil("the test", async () => (await deliverer.listDue()).length > 0);
  await deliverer.deliverDue();
  return running;
}

t.test("test sends a marked event and waits for its attempt, which the log shows", async (t) => {
  receiver.answer = take;
  await deliverAll();
  receiver.received.length = 0;
  for (const [args, type] of [
    [["pty_s1"], "coupon.redeemed"],
    [["pty_s1", "batch.generated"], "batch.generated"],
  ] as const) {
    const found = await runTest(...args);
    const { id, headers, body } = receiver.received.pop()!;
    fits(t, found, { output: new RegExp(`^${id}: HTTP 204 after \\d+ ms$`) });
    t.strictSame([headers["webhook-test"], JSON.parse(body).event_type], ["true", type]);
    t.match(await run("log", tenant, "pty_s1"), new RegExp(`${id} +1 +204 +\\d+ +- +${type}$`, "m"));
  }
});

t.test("test fails with the reason if the receiver does, or if it cannot be sent", async (t) => {
  for (const [code, answer] of [
    [503, status(503)],
    [300, status(300)],
    [99, (response: ServerResponse) => response.socket!.end("HTTP/1.1 099 Odd\r\ncontent-length: 0\r\n\r\n")],
  ] as const) {
    receiver.answer = answer;
    fits(t, await runTest("pty_s1"), { error: new RegExp(`^evt_\\w{26}: HTTP ${code} after \\d+ ms$`) });
  }
  const before = await readState(owner);
  const refuses = (args: string[], message: string | RegExp) => t.rejects(run("test", tenant, ...args), { message });
  await refuses(["pty_maker"], `tenant ${tenant} has no party pty_maker with a webhook`);
  await refuses(["pty_s1", "coupon.minted"], /^TYPE must be one of coupon.redeemed, /);
  t.strictSame(await readState(owner), before);
  await run("disable", tenant, "pty_s1", "--reason", "why");
  await refuses(["pty_s1"], "the webhook of pty_s1 is disabled: enable it first");
  t.equal((await owner.rows("select from core.test_delivery")).length, 0);
  await run("enable", tenant, "pty_s1", "--reason", "for the next tests");
});

t.test("rotate prints the new secret, stores it sealed only, and both secrets sign", async (t) => {
  receiver.answer = take;
  await deliverAll();
  receiver.received.length = 0;
  const args = ["rotate", tenant, "pty_s1", "--reason", "it leaked"];
  const { code, stdout, stderr } = await runProgram("webhooks", { args, env: environmentOf(service) });
  t.strictSame({ code, stderr }, { code: 0, stderr: "" });
  t.match(stdout, /^whsec_[A-Za-z0-9+/]{43}=\n$/);
  const [before, after] = [fixture.secrets.get("pty_s1")!, stdout.trim()];
  await fixture.happen("pty_s1", 1);
  await deliverer.deliverDue();
  for (const secret of [before, after]) verify(secret, receiver.received[0]!);
  const [stored] = await owner.rows<{ text: string }>(
    `select (select string_agg(w::text, '') from core.webhook w)
            || (select string_agg(a::text, '') from report.audit a) as text`,
  );
  t.match(stored!.text, "it leaked");
  for (const secret of [before, after]) {
    const encoded = secret.slice("whsec_".length);
    const bytes = [Buffer.from(secret), Buffer.from(encoded, "base64")].map((each) => each.toString("hex"));
    for (const form of [encoded, ...bytes]) t.notOk(stored!.text.includes(form));
  }
});

t.test("test gives up after 30 s if no worker sends it", async (t) => {
  const waits = recordWaits(t, (ms) => (ms === 200 ? 0 : ms));
  const message = /^evt_\w{26} still waits after 30 s: is `npm run work` running, and is the webhook paused\?$/;
  await t.rejects(run("test", tenant, "pty_s1"), { message });
  t.equal(waits.filter((ms) => ms === 200).length, 150);
});

t.test("a wrong command is refused with a sentence, and changes nothing", async (t) => {
  const why = ["--reason", "why"];
  const [begin, end] = ["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"];
  const noZone = /must be an ISO 8601 timestamp with a zone, such as 2026-01-31T00:00:00Z$/;
  const rows: [string[], RegExp][] = [
    [[], /^COMMAND is missing$/],
    [["log", tenant], /^PARTY is missing$/],
    [["parked", "--limit", "0"], /^--limit must be a positive whole number, not "0"$/],
    [["replay", tenant, "pty_s1", ...why], /^name an EVENT, or a PARTY with FROM and TO or with --parked$/],
    [["replay", tenant, "evt_1", "--parked", ...why], /^name an EVENT, or a PARTY/],
    [["replay", tenant, "pty_s1", begin, ...why], /^TO is missing$/],
    [["replay", tenant, "pty_s1", begin, end, "--parked", ...why], /^FROM and TO belong to a PARTY, without --parked$/],
    [["replay", tenant, "evt_1", begin, end, ...why], /^FROM and TO belong to a PARTY, without --parked$/],
    [["replay", tenant, "pty_s1", "2026-01-01T00:00:00", end, ...why], noZone],
    [["replay", tenant, "pty_s1", begin, "tomorrow", ...why], noZone],
    [["rotate", tenant, "pty_s1"], /^--reason WHY is missing$/],
    [["disable", tenant, "pty_s1", "--reason", " "], /^a patch needs a reason$/],
    [["enable", tenant, "pty_maker", ...why], /^tenant ten_w has no party pty_maker with a webhook$/],
    [["rotate", "ten_none", "pty_s1", ...why], /has no party/],
    [["replay", tenant, "evt_none", ...why], /has no event evt_none/],
    [["replay", tenant, `evt_${"0".repeat(26)}`, ...why], /has no event/],
  ];
  const countAudits = async () => (await owner.rows("select from report.audit")).length;
  const before = await countAudits();
  for (const [args, message] of rows) await t.rejects(run(...args), { message }, args.join(" "));
  const code = makeCode(keys, "1", batchKey(keys, "1", randomBytes(16)), 1);
  for (const [reason, stderr] of [
    [" ", "a patch needs a reason\n"],
    [`lost ${code}`, "an argument contains a coupon code: name a coupon by its ID, cpn_…\n"],
  ] as const) {
    const args = ["rotate", tenant, "pty_s1", `--reason=${reason}`];
    const ended = await runProgram("webhooks", { args, env: environmentOf(service) });
    t.strictSame(ended, { code: 1, stdout: "", stderr }, "as a program");
  }
  t.equal(await countAudits(), before);
});

const secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
const older = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const body = '{"event_id":"evt_1","event_type":"coupon.voided","note":"\u009b[31m"}';
const send = createSender({ mayConnect: createAddressRule(loopbackOnly), timeoutMs: 60_000 });

async function startListening(t: Test, changes: Partial<Parameters<typeof startListener>[0]> = {}) {
  const printed: string[] = [];
  const print = (line: string) => void printed.push(line.replace(/^\S+Z /, ""));
  const usual = { port: 0, secrets: [secret, older], status: 204, lateSeconds: 0, isSilent: false, print };
  const listener = await startListener({ ...usual, ...changes });
  t.teardown(listener.stop);
  const deliver = (secrets: string[], isTest = false) =>
    send({ id: "evt_1", url: listener.url, body, secrets, isTest });
  return { ...listener, printed, deliver };
}

t.test("listen prints what is genuine by either secret, a test or a repeat, and refuses the rest", async (t) => {
  const { deliver, printed, url } = await startListening(t);
  fits(t, await deliver([secret.replace("MDEy", "AAAA")]), { httpStatus: 401 });
  fits(t, await deliver([secret]), { httpStatus: 204 });
  fits(t, await deliver([older], true), { httpStatus: 204 });
  fits(t, await deliver([secret.replace("MDEy", "AAAA")]), { httpStatus: 401 });
  const timestamp = String(Math.floor(Date.now() / 1000) - 301);
  const key = Buffer.from(secret.slice(6), "base64");
  const signature = `v1,${createHmac("sha256", key).update(`evt_1.${timestamp}.x`).digest("base64")}`;
  const headers = { "webhook-id": "evt_1", "webhook-timestamp": timestamp, "webhook-signature": signature };
  t.equal((await fetch(url, { method: "POST", body: "x", headers })).status, 401);
  t.equal((await fetch(url, { method: "POST", body: "x" })).status, 401);
  const shown = body.replaceAll("\u009b", "?");
  const lines = [
    ["evt_1: no signature of the webhook is right, answer 401", shown],
    // A forged one does not count as seen.
    ["evt_1: genuine, answer 204", shown],
    ["evt_1: genuine, test, seen before, answer 204", shown],
    ["evt_1: no signature of the webhook is right, answer 401", shown],
    ["evt_1: the webhook is more than 300 s off, answer 401", "x"],
    ["no webhook-id: the webhook has no webhook-id, answer 401", "x"],
  ];
  t.strictSame(printed, lines.flat());
});

t.test("listen answers wrong, late or never on request", async (t) => {
  const wrong = await startListening(t, { status: 500 });
  fits(t, await wrong.deliver([secret]), { httpStatus: 500 });
  const late = await startListening(t, { lateSeconds: 1 });
  fits(t, await late.deliver([secret]), { httpStatus: 204 });
  t.equal(late.printed[0], "evt_1: genuine, answer 204 after 1 s");
  for (const [change, line] of [
    [{ lateSeconds: 60 }, "evt_1: genuine, answer 204 after 60 s"],
    [{ isSilent: true }, "evt_1: genuine, no answer"],
  ] as const) {
    const { deliver, printed } = await startListening(t, change);
    const answer = deliver([secret]);
    await waitUntil("the webhook to arrive", () => printed.length > 0);
    t.equal(printed[0], line);
    t.equal(await Promise.race([answer, sleep(300, "no answer yet")]), "no answer yet");
  }
});

t.test("listen is a program without a database: it says where it listens, and a signal stops it", async (t) => {
  const port = await findFreePort();
  const url = `http://127.0.0.1:${port}`;
  const args = ["listen", "--port", String(port)];
  const env = { DATABASE_URL: "none", DATA_DIR: t.testdir(), WEBHOOK_SECRET: `${secret} ${older}` };
  const { untilPrinted, stop } = launch(t, "webhooks", { args, env });
  await untilPrinted(new RegExp(`^listening on ${url}\n$`));
  fits(t, await send({ id: "evt_1", url, body: "{}", secrets: [older], isTest: false }), { httpStatus: 204 });
  await untilPrinted(/\n\S+Z evt_1: genuine, answer 204\n\{\}\n$/);
  fits(t, await stop(), { code: 0, stderr: "" });
});

t.test("listen refuses secrets, ports and statuses that make no sense", async (t) => {
  const wrong = ["abc", "whsec_", "whsec_abc!", "xwhsec_abc", "whsec_abc===", "whsec_=a", "whsec_abc,whsec_def"];
  const message = "WEBHOOK_SECRET must hold the secret of the webhook (whsec_…), or several with spaces between";
  for (const text of [undefined, "", " ", ...wrong, ...wrong.map((one) => `${secret} ${one}`)])
    t.throws(() => readWebhookSecrets({ WEBHOOK_SECRET: text }), new ConfigError(message), String(text));
  for (const good of ["whsec_abc", "whsec_ab+/09=", "whsec_abc=="])
    t.strictSame(readWebhookSecrets({ WEBHOOK_SECRET: ` ${good}\n${secret} ` }), [good, secret]);
  t.match(formatHelp("listen", listen), /--port N +the port \(3000\)\n/);
  for (const [flag, right, others, message] of [
    ["--port", ["65535"], ["65536"], "--port must be at most 65535"],
    ["--status", ["200", "599"], ["199", "600"], "--status must be from 200 to 599"],
  ] as const) {
    for (const value of right) listen.read([flag, value]);
    for (const value of others) t.throws(() => listen.read([flag, value]), { name: "UsageError", message });
  }
});
