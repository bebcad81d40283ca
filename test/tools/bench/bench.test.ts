// The short form of the benches: each completes, gets right answers, measures something and breaks no invariant. Its
// figures mean nothing. Left out are `scale`, whose parts the others run too, `reports`, whose data and questions
// test/db/plans.test.ts uses, and `instructions`, which takes valgrind minutes.
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import t from "tap";
import { formatUrl, isSocketFolder } from "../../../src/config/database-address.ts";
import { root } from "../../support/copy.ts";
import { readRun } from "../../support/database.ts";

t.test("each bench completes and measures something", async (t) => {
  const { server } = readRun();
  const { stdout } = await promisify(execFile)(process.execPath, ["test/tools/bench/run.ts", "--small"], {
    cwd: root,
    env: { ...process.env, BENCH_DATABASE_URL: formatUrl(server) },
  });
  t.comment(stdout);
  const titles = [...stdout.matchAll(/^(\w+) \(.*\)$/gm)].map(([, name]) => name);
  t.strictSame(titles, ["redemptions", "tills", "mint", "feed", "webhooks", "statement"]);
  const lines = stdout.split("\n").filter((line) => line.startsWith("│") && !line.includes("(index)"));
  const rows = lines.map((line) =>
    line
      .split("│")
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
  // Without pgbench, three rows of the floor are missing.
  t.ok(rows.length === 18 || rows.length === 15, `${rows.length} rows`);
  for (const [name, ...cells] of rows) {
    // Other tests use the server too, and the CPU of their connections leaves its sum when they end.
    const ofServer = cells.length - 2;
    const signless = cells.map((cell, index) => (index === ofServer ? cell.replace("-", "") : cell));
    const figures = signless.filter((cell) => cell !== "").map(Number);
    // Programs count their CPU in hundredths of a second, so the idle ones and short rounds show 0.
    t.ok(figures[0]! > 0 && figures.every((figure) => figure >= 0), `${name}: ${cells}`);
  }
  const redeemed = rows.find(([name]) => name === "HTTP, 64 connections")!;
  t.notOk(redeemed.includes("0"), "redemptions cost log and CPU");
  // A server in a container does not show its CPU.
  if (isSocketFolder(server.host)) t.not(redeemed.at(-2), "", "the CPU of the database is seen");
});
