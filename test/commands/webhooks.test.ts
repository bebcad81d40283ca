// npm run webhooks: the commands of an operator.
import { randomBytes } from "node:crypto";
import t, { type Test } from "tap";
import { chooseCommand } from "../../src/common/command.ts";
import { webhooks } from "../../src/commands/webhooks.ts";
import { batchKey, makeCode } from "../../src/crypto/coupon-code.ts";
import { fits } from "../support/fits.ts";
import { runProgram } from "../support/program.ts";
import { startReceiver, status, take, verify } from "../support/receiver.ts";
import {
  listDeliveries,
  passTime,
  startDeliverer,
  subscribe,
  tenant,
  type Subscribed,
} from "../support/subscribers.ts";

async function runCommand(context: ReturnType<typeof contextOf>, args: string[]): Promise<string> {
  const { command, args: rest } = chooseCommand(webhooks, args);
  return command.read(rest)(context);
}

/** --json gives the same rows: numbers as numbers, times as ISO 8601, null as null. */
async function checkJson(t: Test, { service }: Subscribed, run: (...args: string[]) => Promise<string>) {
  const [first, second] = JSON.parse(await run("status", "--json")) as Record<string, unknown>[];
  fits(t, first, { tenant, party: "pty_s1", health: "failing", waiting: 3, failing: 3, parked: 0, failures_24h: 3 });
  fits(t, second, { tenant, party: "pty_s2", health: "healthy", waiting: 0, parked: 0, oldest_waiting_at: null });
  const attempts = await service.owner.rows<Record<string, unknown>>(
    `select attempted_at, event, attempt, http_status, duration_ms, error, null as test from report.delivery_attempt
     where party = 'pty_s1' order by attempted_at desc, event`,
  );
  t.strictSame(
    JSON.parse(await run("log", tenant, "pty_s1", "--json")),
    attempts.map((row) => ({ ...row, attempted_at: (row["attempted_at"] as Date).toISOString() })),
  );
  t.equal(await run("parked", tenant, "--json"), "[]");
}

const contextOf = ({ service }: Subscribed) => ({ database: service.admin, keys: service.keys });

t.test("status, log and parked show deliveries; replay sends them again", async (t) => {
  const receiver = await startReceiver(t, status(500));
  const fixture = await subscribe(t, [`${receiver.url}/1`, `${receiver.url}/2`]);
  const deliverer = startDeliverer(fixture, fixture.worker);
  const run = (...args: string[]) => runCommand(contextOf(fixture), args);
  const sentAgain = async (...args: string[]) => {
    receiver.received.length = 0;
    const output = await run("replay", tenant, ...args, "--reason", "they lost it");
    await deliverer.drain();
    t.equal(output, `${receiver.received.length} to be sent again`);
    return receiver.received.map(({ id }) => id).sort();
  };
  const events = await fixture.happen("pty_s1", 3);
  await deliverer.drain();
  t.match(
    await run("status"),
    /^tenant +party +health .*\nten_w +pty_s1 +failing +3 +3 +0 .*\nten_w +pty_s2 +healthy +0 +0 +0 /,
  );
  t.match(await run("status", tenant, "pty_s2"), /^.*\nten_w +pty_s2 [^\n]*$/);
  const log = await run("log", tenant, "pty_s1");
  for (const event of events) t.match(log, new RegExp(`${event} +1 +500 +\\d+ +- +-$`, "m"));
  t.equal((await run("log", tenant, "pty_s1", "--limit", "1")).split("\n").length, 2);
  await checkJson(t, fixture, run);

  await fixture.service.owner.rows("update core.delivery set attempt_count = 9");
  await passTime(fixture);
  await deliverer.drain();
  const parked = await run("parked", tenant, "pty_s1");
  for (const event of events)
    t.match(parked, new RegExp(`ten_w +pty_s1 +${event} +coupon.voided +\\S+ +10 +\\S+ +HTTP 500$`, "m"));
  t.equal(await run("parked", tenant, "pty_s2"), "none");
  const readRows = async <T>(...args: string[]): Promise<T[]> => JSON.parse(await run(...args, "--json")) as T[];
  const logged = await readRows<{ attempt: number }>("log", tenant, "pty_s1", "--limit", "4");
  t.strictSame(
    logged.map(({ attempt }) => attempt),
    [10, 10, 10, 1],
    "newest first",
  );
  const oldest = await readRows<{ event: string }>("parked", tenant, "--limit", "2");
  t.strictSame(
    oldest.map(({ event }) => event),
    events.slice(0, 2),
    "oldest first",
  );

  receiver.answer = take;
  t.strictSame(await sentAgain("pty_s1", "--parked"), [...events].sort());
  t.equal(await run("parked"), "none");
  t.strictSame(await sentAgain(events[1]!), [events[1]]);
  const times = await fixture.service.owner.rows<{ at: Date }>(
    "select recorded_at as at from report.event where event = any ($1::text[]) order by event_seq",
    [events],
  );
  const [from, to] = [times[0]!.at.toISOString(), new Date(times[2]!.at.getTime() + 1).toISOString()];
  t.strictSame(await sentAgain("pty_s1", from, to), [...events].sort());
  t.strictSame(await sentAgain("pty_s1", "2020-01-01T00:00:00+05:45", "2020-01-02T00:00:00Z"), []);
});

t.test("rotate prints the new secret, stores it sealed only, and both secrets sign", async (t) => {
  const receiver = await startReceiver(t);
  const fixture = await subscribe(t, [receiver.url]);
  const { code, stdout, stderr } = await runProgram(fixture.service, "webhooks", [
    "rotate",
    tenant,
    "pty_s1",
    "--reason",
    "it leaked",
  ]);
  t.strictSame({ code, stderr }, { code: 0, stderr: "" });
  t.match(stdout, /^whsec_[A-Za-z0-9+/]{43}=\n$/);
  const [before, after] = [fixture.secrets.get("pty_s1")!, stdout.trim()];
  await fixture.happen("pty_s1", 1);
  await startDeliverer(fixture, fixture.worker).drain();
  for (const secret of [before, after]) verify(secret, receiver.received[0]!);
  const stored = JSON.stringify(
    await fixture.service.owner.rows(
      "select w::text as webhook, (select jsonb_agg(a) from report.audit a)::text as audit from core.webhook w",
    ),
  );
  t.match(stored, "it leaked");
  for (const secret of [before, after]) {
    const bytes = Buffer.from(secret.slice(6), "base64").toString("hex");
    t.notOk(
      stored.includes(bytes) ||
        stored.includes(Buffer.from(secret).toString("hex")) ||
        stored.includes(secret.slice(6)),
    );
  }
  // Applying a file without a secret keeps the new one.
  await fixture.service.apply({
    tenants: [
      {
        id: tenant,
        name: "W",
        variant: "B",
        parties: [{ id: "pty_s1", name: "pty_s1", webhook: { url: receiver.url } }],
      },
    ],
  });
  await fixture.happen("pty_s1", 1);
  await startDeliverer(fixture, fixture.worker).drain();
  verify(after, receiver.received[1]!);
});

t.test("disable parks waiting deliveries, enable starts new ones", async (t) => {
  const receiver = await startReceiver(t);
  const fixture = await subscribe(t, [receiver.url]);
  const deliverer = startDeliverer(fixture, fixture.worker);
  const events = await fixture.happen("pty_s1", 2);
  const run = (...args: string[]) => runCommand(contextOf(fixture), [...args, "--reason", "their wish"]);
  t.equal(await run("disable", tenant, "pty_s1"), "disabled");
  await deliverer.drain();
  t.equal(receiver.received.length, 0);
  for (const delivery of await listDeliveries(fixture))
    fits(t, delivery, { status: "PARKED", last_error: "disabled: their wish" });
  t.match(await run("enable", tenant, "pty_s1"), /^enabled/);
  t.equal(await run("replay", tenant, "pty_s1", "--parked"), "2 to be sent again");
  await deliverer.drain();
  t.strictSame(receiver.received.map(({ id }) => id).sort(), [...events].sort());
});

t.test("a wrong command is refused with a sentence, and changes nothing", async (t) => {
  const fixture = await subscribe(t, ["http://127.0.0.1:9/"]);
  const why = ["--reason", "why"];
  const rows: [string[], RegExp][] = [
    [[], /^COMMAND is missing$/],
    [["toString"], /^unknown command "toString"$/],
    [["status", "a", "b", "c"], /^unexpected argument "c"$/],
    [["log", tenant], /^PARTY is missing$/],
    [["status", "--x"], /^unknown option --x$/],
    [["parked", "--limit", "0"], /^--limit must be a number from 1, not "0"$/],
    [["replay", tenant, "pty_s1", ...why], /^name an EVENT, or a PARTY with FROM and TO or with --parked$/],
    [["replay", tenant, "evt_1", "--parked", ...why], /^name an EVENT, or a PARTY/],
    [["replay", tenant, "pty_s1", "2026-01-01T00:00:00Z", ...why], /^TO is missing$/],
    [
      ["replay", tenant, "pty_s1", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "--parked", ...why],
      /^FROM and TO belong to a PARTY, without --parked$/,
    ],
    [
      ["replay", tenant, "pty_s1", "yesterday", "today", ...why],
      /^yesterday: must be an ISO 8601 timestamp with a zone, such as 2026-01-31T00:00:00Z$/,
    ],
    [
      ["replay", tenant, "pty_s1", "2026-01-01T00:00:00Z", "tomorrow", ...why],
      /^tomorrow: must be an ISO 8601 timestamp with a zone/,
    ],
    [
      ["replay", tenant, "pty_s1", "2026-01-01T00:00:00", "2026-01-02T00:00:00", ...why],
      /must be an ISO 8601 timestamp with a zone/,
    ],
    [["rotate", tenant, "pty_s1"], /^--reason WHY is missing$/],
    [["disable", tenant, "pty_s1", "--reason", " "], /^a patch needs a reason$/],
    [["enable", tenant, "pty_maker", ...why], /^tenant ten_w has no party pty_maker with a webhook$/],
    [["rotate", "ten_none", "pty_s1", ...why], /has no party/],
    [["replay", tenant, "evt_none", ...why], /has no event evt_none/],
    [["replay", tenant, `evt_${"0".repeat(26)}`, ...why], /has no event/],
  ];
  for (const [args, message] of rows)
    await t.rejects(runCommand(contextOf(fixture), args), { message }, args.join(" "));
  fits(
    t,
    await runProgram(fixture.service, "webhooks", ["rotate", tenant, "pty_s1", "--reason", " "]),
    { code: 1, stdout: "", stderr: "a patch needs a reason\n" },
    "as a program",
  );
  const code = makeCode(fixture.service.keys, "1", batchKey(fixture.service.keys, "1", randomBytes(16)), 1);
  fits(
    t,
    await runProgram(fixture.service, "webhooks", ["disable", tenant, "pty_s1", `--reason=lost ${code}`]),
    { code: 1, stdout: "", stderr: "an argument contains a coupon code: name a coupon by its ID, cpn_…\n" },
    "a code",
  );
  t.equal(
    (await fixture.service.owner.rows("select from report.audit where action like any (array['%webhook%', 'replay%'])"))
      .length,
    0,
  );
});
