// npm run statements: finished statements are listed, and compared with the ledger.
import t from "tap";
import type { Verdict } from "../../src/commands/statements.ts";
import type { Session } from "../../src/database/types.ts";
import { manyDistributors, moveToNoon, openBooks } from "../support/business-days.ts";
import { fits } from "../support/fits.ts";
import { environmentOf, runProgram } from "../support/program.ts";
import { scenario } from "../support/scenario.ts";

// Six distributors with a day of three entries each. Nobody closed their books for twenty days before.
const emptyDays = 20;
const { tenant, parties } = manyDistributors(6);
const service = await scenario(t, { file: { tenants: [tenant] }, mayBreakInvariants: true });
for (const party of parties) await moveToNoon(service, party);
const coupons = await openBooks(service, parties, 2);
const { ok } = service.as("ak_many", "mch_many");
for (const party of parties) {
  const [first, last] = coupons.get(party)!;
  for (const coupon of [first!, last!]) await ok.redeem(coupon, { store: `shop of ${party}` });
  await ok.reverse(last!);
}
await service.steps.sequence();
const superuser = await service.openPsql({ triggers: false });
await superuser.rows(`update core.ledger_book set open_on = open_on - ${emptyDays}`);
for (const party of parties) await moveToNoon(service, party, 1);
await service.steps.close();

const run = (...args: string[]) => runProgram("statements", { args, env: environmentOf(service) });
const count = parties.length * (emptyDays + 1);

t.test("list shows statements newest first, as a table and as JSON", async (t) => {
  t.strictSame(service.steps.log, []);
  const rows = await service.owner.rows<Record<string, unknown>>(
    `select tenant, distributor, business_date::text, closed_at, ready_at, entry_count, detail_bytes::int,
            summary_rows, summary_bytes::int
     from report.statement order by business_date desc, distributor`,
  );
  const toIso = (at: unknown): string => (at as Date).toISOString();
  const expected: Record<string, unknown>[] = rows.map((row) => ({
    ...row,
    closed_at: toIso(row["closed_at"]),
    ready_at: toIso(row["ready_at"]),
  }));
  t.equal(expected.length, count);
  const list = async (...args: string[]) => (await run("list", ...args)).stdout;
  const ofLast = expected.filter(({ distributor }) => distributor === parties[5]);
  t.strictSame(JSON.parse(await list("ten_many", parties[5]!, "--json")), ofLast);
  t.equal(await list("ten_other", "--json"), "[]\n");
  t.strictSame(JSON.parse(await list("--limit", "7", "--json")), expected.slice(0, 7));
  const lines = (await list()).trimEnd().split("\n");
  t.strictSame(
    lines.map((line) => line.split(/ +/)),
    [Object.keys(expected[0]!), ...expected.slice(0, 100).map((row) => Object.values(row).map(String))],
  );
});

// Changes something about the statement with entries of each of the first five parties. Triggers must be disabled.
async function spoil(psql: Session): Promise<void> {
  const of = (column: string, index: number) =>
    `${column} = (select party_id from core.party where external_id = '${parties[index]}')`;
  await psql.run(`
    update core.ledger_entry set amount_minor = amount_minor + 1
    where entry_type = 'REDEMPTION' and ${of("distributor_id", 0)}
      and entry_id in (select redemption_id from core.redemption where status = 'REDEEMED');
    update core.redemption set store = 'another' where store = 'shop of ${parties[1]}' and status = 'REDEEMED';
    update core.posting_page set event_seqs = trim_array(event_seqs, 1) where ${of("distributor_id", 2)};
    update core.statement_line set reversal_count = 2 where ${of("distributor_id", 3)};
    update core.statement set summary_sha256 = repeat('0', 64) where entry_count > 0 and ${of("distributor_id", 4)};
    update core.statement_line set currency = 'USD' where ${of("distributor_id", 4)};
    update core.statement s set summary_bytes = summary_bytes + 1
    where (s.distributor_id, s.business_date)
          = (select distributor_id, business_date from core.statement order by 1 desc, 2 desc limit 1)`);
}

t.test("verify finds changes made with triggers disabled, and names the statement and file", async (t) => {
  const right = `${count} statements checked, no differences\n`;
  t.strictSame(await run("verify"), { code: 0, stdout: right, stderr: "" });
  t.strictSame(JSON.parse((await run("verify", "--json")).stdout), { checked: count, wrong: [] });

  await spoil(superuser);
  const { code, stdout } = await run("verify");
  t.equal(code, 1);
  const document = await run("verify", "--json");
  const { checked, wrong } = JSON.parse(document.stdout) as { checked: number; wrong: Verdict[] };
  t.strictSame({ code: document.code, checked }, { code: 1, checked: count }, "each page of 100");
  t.equal(
    wrong.flatMap(({ statement, differences }) => differences.map((each) => `${statement}: ${each}\n`)).join(""),
    stdout.slice(0, stdout.indexOf(`${count} statements checked`)),
    "the document has the differences of the text",
  );
  const lines = stdout.trimEnd().split("\n");
  t.equal(lines.pop(), `${count} statements checked, 6 differ`);
  const differencesOf = (index: number) =>
    lines
      .filter((line) => line.includes(` ${parties[index]} `))
      .map((line) => line.replace(/^.*?: /, "").replace(/[0-9a-f]{64}/g, "#"));
  const sums = "2/1470 redeemed and 1/-735 reversed (count/minor units)";
  t.strictSame(differencesOf(0), [
    "detail.csv: sha256 is #, was # when it was finished",
    `summary.csv has ${sums} for mch_many tpl_one EUR, the ledger has ${sums.replace("1470", "1471")}`,
  ]);
  fits(t, differencesOf(1), [/^detail\.csv: bytes is \d+, was \d+/, /^detail\.csv: sha256 is/]);
  fits(t, differencesOf(2), [
    /^detail\.csv: rows is 2, was 3/,
    /^detail\.csv: bytes is/,
    /^detail\.csv: sha256 is/,
    /^summary\.csv has 2\/1470 .* the ledger has 2\/1470 redeemed and 0\/0 reversed/,
  ]);
  fits(t, differencesOf(3), [/^summary\.csv: sha256 is/, /^summary\.csv has .* 2\/-735 reversed/]);
  t.strictSame(differencesOf(4), [
    "summary.csv: sha256 is #, was # when it was finished",
    `summary.csv has nothing for mch_many tpl_one EUR, the ledger has ${sums}`,
    `summary.csv has ${sums} for mch_many tpl_one USD, the ledger has nothing`,
  ]);
  fits(t, differencesOf(5), [/^summary\.csv: bytes is \d+, was \d+/], "also in the last statement");
});
