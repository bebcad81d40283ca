// The short form of a bench: it completes, gets right answers, measures something and breaks no invariant. Its figures
// mean nothing. The others share its parts. Left out are `scale`, whose parts the others run too, `reports`, whose data
// and questions test/db/plans.test.ts uses, `instructions`, which takes valgrind minutes, and `--against`, which starts
// all programs twice. The last test shows that the hand-written service has the duties of ours.
import { execFile, spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import t, { type Test } from "tap";
import { formatUrl, isSocketFolder } from "../../../src/config/database-address.ts";
import { root } from "../../support/copy.ts";
import { createClient, type CallOptions } from "../../support/client.ts";
import { readRun } from "../../support/database.ts";
import { findRouterBinaries, howToInstall } from "../../support/router.ts";
import { leaveUnchecked } from "../../support/described-answers.ts";
import { useTemporaryFolder } from "../../support/temporary-folder.ts";
import { openPool } from "./coupons.ts";
import { openEnvironment } from "./environment.ts";
import { readCpu } from "./measure.ts";
import { openQuota } from "./quota.ts";
import { startHandWritten } from "./redemptions.ts";

/** The rows of the tables that it prints, without their heads. */
async function runShort(t: Test, names: string[]): Promise<string[][]> {
  const { stdout } = await promisify(execFile)(process.execPath, ["test/tools/bench/run.ts", ...names, "--small"], {
    cwd: root,
    env: { ...process.env, BENCH_DATABASE_URL: formatUrl(readRun().server) },
  });
  t.comment(stdout);
  const titles = [...stdout.matchAll(/^(\w+) \(.*\)$/gm)].map(([, name]) => name);
  t.strictSame(titles, names);
  const lines = stdout.split("\n").filter((line) => line.startsWith("│") && !line.includes("(index)"));
  return lines.map((line) =>
    line
      .split("│")
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

t.test("the bench of redemptions completes and measures something", async (t) => {
  const { server } = readRun();
  const rows = await runShort(t, ["redemptions"]);
  // Without pgbench, four rows of the floors are missing.
  t.ok(rows.length === 11 || rows.length === 7, `${rows.length} rows`);
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

t.test(
  "the benches of a router complete and measure something",
  { skip: findRouterBinaries() === undefined && howToInstall },
  async (t) => {
    const rows = await runShort(t, ["router", "cells"]);
    t.strictSame(
      rows.map(([name]) => name),
      [
        ...["96 connections", "8 connections", "one connection"].flatMap((load) => [
          `direct, ${load}`,
          `router, ${load}`,
        ]),
        "one cell, without a quota",
        "two cells, without a quota",
      ],
    );
    for (const [name, group, rate] of rows.slice(0, 6))
      t.ok(Number(group) >= 1 && Number(rate) > 0, `${name}: ${group} in a group, ${rate}/s`);
    t.ok(Number(rows[0]![1]) > 2, "96 connections form groups");
  },
);

t.test("a quota holds processes to a share of a core", async (t) => {
  const quota = openQuota("test", 0.1);
  if (quota === null) return void t.comment("no control group limits CPU here");
  const program = spawn("sh", ["-c", "while :; do :; done"]);
  t.teardown(() => program.kill("SIGKILL"));
  quota.add([program.pid!]);
  await sleep(1_000);
  const spent = readCpu(program.pid!).own;
  quota.remove();
  t.ok(spent < 0.5, `${spent} s of one second`);
});

t.test("the hand-written service answers a plain redeem as ours does", async (t) => {
  const folder = useTemporaryFolder(t, "coupon-bench-");
  const environment = await openEnvironment({ address: readRun().server, folder });
  const [first, second, third] = (await (await openPool(environment, 3)).draw(3)).map(({ body }) => body);
  const handWritten = await startHandWritten(environment, { folder });
  leaveUnchecked(handWritten.environment.url, "all");

  async function play(url: string) {
    const client = createClient({ url, ...environment.credential });
    const redeem = async (body: object, options?: CallOptions) => {
      const { status, json, text } = await client.post("/v1/coupons/redeem", body, options);
      return { outcome: [status, json.code, json.discount_amount], text };
    };
    const granted = await redeem(first!, { nonce: "a-nonce-that-is-sent-twice" });
    const atOnce = await Promise.all(Array.from({ length: 8 }, () => redeem(second!)));
    const refused = await redeem({ ...first, request_id: "another" });
    const repeated = [await redeem(first!), await redeem({ ...first, request_id: "another" })];
    const others = [
      await redeem(third!, { nonce: "a-nonce-that-is-sent-twice" }),
      await redeem(third!, { timestamp: String(Math.floor(Date.now() / 1_000) - 400) }),
      await redeem({ ...first, order_amount: 1 }),
      await redeem({ ...third, coupon: third!.coupon.replace(/.$/, (last) => (last === "0" ? "1" : "0")) }),
      await redeem({ ...third, request_id: "elsewhere", merchant: "mch_unknown" }),
      await redeem({ ...third, request_id: "too exact", order_amount: 0.001 }),
      await redeem({ ...third, request_id: "in dollars", currency: "USD" }),
    ];
    return {
      outcomes: [granted, refused, ...repeated, ...others].map(({ outcome }) => outcome),
      isReplayed: repeated[0]!.text === granted.text && repeated[1]!.text === refused.text,
      answersAtOnce: new Set(atOnce.map(({ text }) => text)).size,
    };
  }

  const ours = await play(environment.url);
  t.strictSame(await play(handWritten.environment.url), ours);
  t.match(ours, { isReplayed: true, answersAtOnce: 1 });
  t.strictSame(ours.outcomes.slice(0, 2), [
    [200, undefined, 5],
    [409, "COUPON_REDEEMED", undefined],
  ]);
  await handWritten.stop();
  await environment.close();
});
