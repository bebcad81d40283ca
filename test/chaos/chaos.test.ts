// A short form of `npm run chaos`: a few faults under load, with serve, work and PostgreSQL as separate processes. Also
// tests that the checker finds what it looks for.
import t from "tap";
import { check, type Findings } from "./checker.ts";
import { runCycles, type Report } from "./chaos.ts";
import { outcomeOf, type Entry, type History } from "./history.ts";
import { openEnvironment, type Environment } from "./environment.ts";
import { fits } from "../support/fits.ts";

const seed = 20_261_121;
const perSecond = 60;
// Other test files run at the same time, so times mean little here: a restart may take a minute instead of 2 s. npm run
// chaos checks the times.
const slack = 30;
const mostPending = 16;
const names = ["kill api", "cut answers", "kill postmaster", "shift clock"];
let environment: Environment;
let report: Report;

t.before(async () => {
  environment = await openEnvironment(800, { isSubscribed: false });
  t.teardown(() => environment.stop());
});

t.test("faults lose, repeat and invent nothing, and calls are answered and served again in time", async (t) => {
  report = await runCycles(environment, {
    seed,
    perSecond,
    names,
    slack,
    mostPending,
    print: (line) => t.comment(line),
  });
  t.strictSame(report.failures, []);
  t.ok(report.findings.checked.ok > 300);
  t.ok(report.findings.checked.unprocessed > 0, "while the clock was off");
  t.ok((report.answers["connection lost"] ?? 0) > 0, "answers were lost");
  t.ok((report.answers["503"] ?? 0) > 0, "the database was away");
});

// Compares the same database with a changed history.
async function checkAgainst(change: (entries: History["entries"]) => void): Promise<Findings> {
  const entries = new Map(
    [...report.history.entries].map(([id, entry]) => [
      id,
      { ...entry, attempts: entry.attempts.map((attempt) => ({ ...attempt })) },
    ]),
  );
  change(entries);
  const { address, server, receiver, feeds } = environment;
  return check({
    address,
    history: { ...report.history, entries },
    serverLog: server.log(),
    received: receiver.events,
    feeds,
  });
}
const find = (entries: History["entries"], kind: string, outcome: string): Entry =>
  [...entries.values()].find((entry) => entry.call.kind === kind && outcomeOf(entry) === outcome)!;

t.test("the checker finds a missing effect of an ok answer, and an effect without an ok answer", async (t) => {
  const refused = await checkAgainst((entries) => {
    for (const attempt of find(entries, "redeem", "ok").attempts)
      Object.assign(attempt, { status: 409, code: "COUPON_REDEEMED", text: "{}" });
  });
  fits(t, refused.phantom.map((effect) => effect.split(" ")[0]).sort(), [
    "event",
    "feed",
    "ledger",
    "redemption",
    "request",
  ]);
  t.equal(refused.lost.length, 1, "its record has another answer");

  const ok = await checkAgainst((entries) => {
    const { call, attempts } = find(entries, "redeem", "refused");
    for (const attempt of attempts)
      Object.assign(attempt, { status: 200, code: null, text: `{"redemption":"red_${call.requestId}"}` });
  });
  t.equal(ok.lost.length, 5);
  t.equal(ok.phantom.length, 1);
});

t.test("the checker finds two different answers to one request", async (t) => {
  const { contradictions } = await checkAgainst((entries) => {
    const { attempts } = find(entries, "lock", "ok");
    attempts.push({ ...attempts.at(-1)!, status: 409, code: "COUPON_LOCKED", text: "{}" });
  });
  t.equal(contradictions.length, 1);
});

t.test("a run fails when answers are not recorded", async (t) => {
  const other = await openEnvironment(200, { isSubscribed: false });
  t.teardown(() => other.stop());
  await other.owner.rows(
    `create or replace function rules.is_final(p_answer core.answer) returns boolean language sql immutable
     return false`,
  );
  const { failures, findings } = await runCycles(other, {
    seed,
    perSecond,
    names: ["cut answers"],
    slack,
    print: () => {},
  });
  t.ok(failures.length > 0);
  t.ok(findings.lost.some((effect) => effect.startsWith("request")));
  t.ok(findings.contradictions.length > 0, "a retry was decided again");
});
