// npm run sandbox, as an operator runs it: every test card gets the answer that is printed with it.
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import t from "tap";
import type { Card } from "../../src/commands/sandbox-cards.ts";
import { fits } from "../support/fits.ts";
import { environmentOf, runProgram } from "../support/program.ts";
import { scenario } from "../support/scenario.ts";
import { readState } from "../support/state.ts";
import { tenants } from "../support/tenants.ts";

// Variant A counts in minor units. The stranger is no sandbox.
const file = {
  tenants: structuredClone(tenants).map((one) => ({
    ...one,
    sandbox: one.id !== "ten_a2",
    ...(one.id === "ten_a" && { amount_unit: "minor" }),
  })),
};
const service = await scenario(t, { file });
const env = environmentOf(service);

// Mints beside the program, as a worker would.
async function run(...args: string[]) {
  let isOver = false;
  const running = runProgram("sandbox", { args, env }).finally(() => (isOver = true));
  while (!isOver) {
    await service.mint();
    await sleep(20);
  }
  return running;
}

for (const side of [service.a, service.b])
  t.test(`Variant ${side.variant}: each card gets the answer that is printed with it`, async (t) => {
    const { code, stdout, stderr } = await run("cards", side.tenant, "--merchant", side.merchant, "--json");
    t.strictSame([code, stderr], [0, ""]);
    const cards = JSON.parse(stdout) as Card[];
    t.equal(cards.length, 18);
    t.equal(new Set(cards.map((card) => card.code)).size, 18, "each card is another coupon");
    const page = readFileSync(new URL("../../docs/certify.md", import.meta.url), "utf8");
    for (const card of cards) {
      t.ok(page.includes(`\`${card.case}\``), `docs/certify.md has a case for ${card.case}`);
      const coupon = { code: card.code, id: "", lockRequestId: "", redemption: "" };
      const order = card.order_amount === null ? {} : { order_amount: card.order_amount };
      const reply = await side.till.lock(coupon, order);
      const seen = reply.status === 200 ? "200" : `${reply.status} ${reply.json.code}`;
      t.equal(seen, card.expected, card.case);
      if (card.discount_amount !== null) t.equal(reply.json.discount_amount, card.discount_amount, card.case);
      if (card.case === "short lock") t.ok(Date.parse(reply.json.lock_expires_at) < Date.now() + 60_000, card.case);
    }
    const audited = await service.owner.rows<{ action: string; count: number }>(
      `select action, count(*)::int from report.audit where tenant = $1
       and action in ('export_codes', 'perform_in_sandbox', 'suspend_batch', 'extend_coupon') group by 1 order by 1`,
      [side.tenant],
    );
    t.strictSame(
      audited.map(({ action, count }) => `${action} ${count}`),
      ["export_codes 10", "extend_coupon 1", "perform_in_sandbox 26", "suspend_batch 1"],
    );
    t.notMatch(JSON.stringify(await service.owner.rows("select * from core.audit")), cards[0]!.code);
  });

t.test("cards are a table too, and can be made again", async (t) => {
  const { code, stdout } = await run("cards", "ten_b");
  t.equal(code, 0);
  const [header, ...lines] = stdout.trimEnd().split("\n");
  t.match(header, /^case +code +order_amount +expected +discount_amount$/);
  t.equal(lines.length, 18);
  t.match(lines[0], /^redeemable +[0-9A-Z]{16} +50 +200 +5$/);
  t.match(lines.at(-2), /^mistyped +[0-9A-Z]{16} +50 +422 COUPON_CODE_INVALID +-$/);
  t.match(lines.at(-1), /^unknown +[0-9A-Z]{16} +50 +404 NOT_FOUND +-$/);
});

t.test("reset empties the sandbox, and cards can be made afterwards", async (t) => {
  fits(t, await run("reset", "ten_a", "--reason", "next rehearsal"), {
    code: 0,
    stdout: /^ten_a is empty: 10 batches and 16 coupons are gone\n$/,
    stderr: "",
  });
  const [left] = await service.owner.rows("select from report.coupon where tenant = 'ten_a'");
  t.equal(left, undefined);
  fits(t, await service.owner.rows("select reason from report.audit where action = 'reset_sandbox'"), [
    { reason: "next rehearsal" },
  ]);
  t.equal((await run("cards", "ten_a")).code, 0);
});

t.test("other tenants are refused, and nothing changes", async (t) => {
  const before = await readState(service.owner);
  for (const args of [["cards"], ["reset"]]) {
    fits(t, await run(...args, "ten_a2"), { code: 1, stdout: "", stderr: /ten_a2 is no sandbox/ });
    fits(t, await run(...args, "ten_none"), { code: 1, stdout: "", stderr: /no tenant ten_none/ });
  }
  fits(t, await run("cards", "ten_a", "--merchant", "mch_none"), { code: 1, stderr: /ten_a has no merchant mch_none/ });
  const perform = (tenant: string, party: string, operation: string) =>
    service.admin.rows("select admin.perform_in_sandbox($1, $2, $3, '{}')", [tenant, party, operation]);
  await t.rejects(perform("ten_a2", "pty_a2", "redeem"), /ten_a2 is no sandbox/);
  await t.rejects(perform("ten_b", "pty_none", "redeem"), /tenant ten_b has no party pty_none/);
  await t.rejects(perform("ten_b", "pty_pos", "recall_batch"), /no test card needs recall_batch/);
  t.strictSame(await readState(service.owner), before);
});
