// The short form of a bench: it completes, gets right answers, measures something and breaks no invariant. Its figures
// mean nothing. The others share its parts. Left out are `scale`, whose parts the others run too, `reports`, whose data
// and questions test/db/plans.test.ts uses, `instructions`, which takes valgrind minutes, and `--against`, which starts
// all programs twice. The other test shows that the hand-written service has the duties of ours.
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import t from "tap";
import { formatUrl, isSocketFolder } from "../../../src/config/database-address.ts";
import { root } from "../../support/copy.ts";
import { createClient, type CallOptions } from "../../support/client.ts";
import { readRun } from "../../support/database.ts";
import { leaveUnchecked } from "../../support/described-answers.ts";
import { useTemporaryFolder } from "../../support/temporary-folder.ts";
import { openPool } from "./coupons.ts";
import { openEnvironment } from "./environment.ts";
import { startHandWritten } from "./redemptions.ts";

t.test("the bench of redemptions completes and measures something", async (t) => {
  const { server } = readRun();
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["test/tools/bench/run.ts", "redemptions", "--small"],
    {
      cwd: root,
      env: { ...process.env, BENCH_DATABASE_URL: formatUrl(server) },
    },
  );
  t.comment(stdout);
  const titles = [...stdout.matchAll(/^(\w+) \(.*\)$/gm)].map(([, name]) => name);
  t.strictSame(titles, ["redemptions"]);
  const lines = stdout.split("\n").filter((line) => line.startsWith("│") && !line.includes("(index)"));
  const rows = lines.map((line) =>
    line
      .split("│")
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
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
