// A short form of `npm run chaos`: a few faults under load, with serve, work and PostgreSQL as separate processes. Also
// tests that the checker finds what it looks for.
import t from "tap";
import { fits } from "../../support/fits.ts";
import { runCycles, type Report } from "./chaos.ts";
import { compareAnswers, type Findings } from "./checker.ts";
import { outcomeOf, type Entry, type History } from "./clients.ts";
import { openEnvironment, type Environment } from "./environment.ts";

// Other test files run at the same time, so times mean little here: a restart may take a minute instead of 2 s. npm run
// chaos checks the times.
const slack = 30;
const names = ["kill api", "cut answers", "kill worker", "kill postmaster"];
let environment: Environment;
let report: Report;

t.before(async () => {
  environment = await openEnvironment(800, t.teardown.bind(t), { isSubscribed: false });
});

t.test("faults lose, repeat and invent nothing, and calls are answered and served again in time", async (t) => {
  const print = (line: string) => void t.comment(line);
  report = await runCycles(environment, { seed: 20_261_121, clients: 16, names, slack, print });
  t.strictSame(report.failures, []);
  const { attempts } = report.history;
  t.ok(
    attempts.some(({ code }) => code === "connection lost"),
    "answers were lost",
  );
  t.ok(
    attempts.some(({ status }) => status === 503),
    "the database was away",
  );
});

// Compares the same database with a changed history.
async function checkAgainst(change: (entries: History["entries"]) => void): Promise<Findings> {
  const { history } = report;
  const entries = structuredClone(history.entries);
  change(entries);
  return compareAnswers(environment.owner, { ...history, entries });
}
const find = (entries: History["entries"], kind: string, outcome: string): Entry =>
  [...entries.values()].find((entry) => entry.call.kind === kind && outcomeOf(entry) === outcome)!;

t.test("the checker finds a missing effect of an ok answer, and an effect without an ok answer", async (t) => {
  const refused = await checkAgainst((entries) => {
    for (const attempt of find(entries, "redeem", "ok").attempts)
      Object.assign(attempt, { status: 409, code: "COUPON_REDEEMED", text: "{}" });
  });
  const tables = refused.phantom.map((effect) => effect.split(" ")[0]).sort();
  fits(t, tables, ["event", "feed", "ledger", "redemption", "request"]);
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
