// A short form of `npm run chaos`: a few faults under load, with serve, work and PostgreSQL as separate processes.
import t from "tap";
import { runCycles } from "./chaos.ts";
import { openEnvironment } from "./environment.ts";

// Other test files run at the same time, so times mean little here: a restart may take a minute instead of 2 s. npm run
// chaos checks the times.
const slack = 30;
const names = ["kill api", "cut answers", "kill worker", "kill postmaster"];

t.test("faults lose, repeat and invent nothing, and calls are answered and served again in time", async (t) => {
  const environment = await openEnvironment(t, 800, { isSubscribed: false });
  const print = (line: string) => void t.comment(line);
  const { failures, history } = await runCycles(environment, { seed: 20_261_121, clients: 16, names, slack, print });
  t.strictSame(failures, []);
  const { attempts } = history;
  t.ok(
    attempts.some(({ code }) => code === "connection lost"),
    "answers were lost",
  );
  t.ok(
    attempts.some(({ status }) => status === 503),
    "the database was away",
  );
});
