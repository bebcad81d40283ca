// A short form of `npm run chaos`: a few faults under load, with serve, work and PostgreSQL as separate processes. Also
// tests that the checker finds what it looks for.
import { connect, createServer } from "node:net";
import { text } from "node:stream/consumers";
import { setImmediate } from "node:timers/promises";
import t from "tap";
import { fits } from "../../support/fits.ts";
import { listenOnLoopback } from "../../support/listen.ts";
import { startProxy } from "../../support/proxy.ts";
import { runCycles, type Report } from "./chaos.ts";
import { compareAnswers } from "./checker.ts";
import { outcomeOf, type Entry } from "./clients.ts";
import { openEnvironment, type Environment } from "./environment.ts";

// Other test files run at the same time, so times mean little here: a restart may take a minute instead of 2 s. npm run
// chaos checks the times.
const slack = 30;
// test/worker/lost-worker.test.ts kills workers.
const names = ["kill api", "cut answers", "kill postmaster"];
let environment: Environment;
let report: Report;

t.before(async () => {
  environment = await openEnvironment(t, 800, { isSubscribed: false });
});

t.test("the proxies keep the order of what they delay", async (t) => {
  const sent = Array.from({ length: 200 }, (_, index) => `${index} `);
  const received = Promise.withResolvers<string>();
  const server = createServer((socket) => void text(socket).then(received.resolve));
  const { port, set, stop } = await startProxy({ host: "127.0.0.1", port: await listenOnLoopback(server) });
  t.teardown(() => Promise.all([stop(), server.close()]));
  set({ delay: () => Math.random() * 5 });
  const client = connect({ port, host: "127.0.0.1", noDelay: true });
  for (const part of sent) {
    client.write(part);
    await setImmediate();
  }
  client.end();
  t.equal(await received.promise, sent.join(""));
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

t.test("the checker finds an effect without an ok answer, and two different answers to one request", async (t) => {
  const { history } = report;
  const entries = structuredClone(history.entries);
  const find = (kind: string): Entry =>
    [...entries.values()].find((entry) => entry.call.kind === kind && outcomeOf(entry) === "ok")!;
  for (const attempt of find("redeem").attempts)
    Object.assign(attempt, { status: 409, code: "COUPON_REDEEMED", text: "{}" });
  const { attempts } = find("confirm");
  attempts.push({ ...attempts.at(-1)!, status: 409, code: "LOCK_EXPIRED", text: "{}" });
  const { lost, phantom, contradictions } = await compareAnswers(environment.owner, { ...history, entries });
  const tables = phantom.map((effect) => effect.split(" ")[0]).sort();
  fits(t, tables, ["event", "feed", "ledger", "redemption", "request"]);
  t.equal(lost.length, 1, "the record of the redeem has another answer");
  t.equal(contradictions.length, 2, "the answers to the confirm differ, and neither is a replay");
});
