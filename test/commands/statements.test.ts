// npm run statements -- verify: finished statements are compared with the ledger.
import t from "tap";
import { verify, type Verdict } from "../../src/commands/statements.ts";
import { openSession } from "../../src/database/connect.ts";
import type { Session } from "../../src/database/types.ts";
import { fits } from "../support/fits.ts";
import { runProgram } from "../support/program.ts";
import { startStatementFixture } from "../support/statement-fixture.ts";

// Changes something about the statement of each of the first five parties. Triggers must be disabled.
async function spoil(superuser: Session, parties: string[]): Promise<void> {
  const mine = (column: string, party: string) =>
    `${column} = (select party_id from core.party where external_id = '${party}')`;
  await superuser.run(
    `update core.ledger_entry
     set amount_minor = amount_minor + 1
     where entry_type = 'REDEMPTION' and ${mine("distributor_id", parties[0]!)}
       and entry_id in (select redemption_id from core.redemption where status = 'REDEEMED')`,
  );
  await superuser.run(
    `update core.redemption set store = 'another' where store = 'shop of ${parties[1]}' and status = 'REDEEMED'`,
  );
  await superuser.run(
    `update core.posting_page set event_seqs = trim_array(event_seqs, 1) where ${mine("distributor_id", parties[2]!)}`,
  );
  await superuser.run(`update core.statement_line set reversal_count = 2 where ${mine("distributor_id", parties[3]!)}`);
  await superuser.run(
    `update core.statement set summary_sha256 = repeat('0', 64) where ${mine("distributor_id", parties[4]!)}`,
  );
  await superuser.run(`update core.statement_line set currency = 'USD' where ${mine("distributor_id", parties[4]!)}`);
}

t.test("verify finds changes made with triggers disabled, and names the statement and file", async (t) => {
  const fixture = await startStatementFixture(t, 6, { mayBreakInvariants: true });
  const { service, books, parties } = fixture;
  for (const party of parties) await fixture.end(party);
  await books.close();
  fits(t, await runProgram(service, "statements", ["verify"]), {
    code: 0,
    stdout: "6 statements checked, no differences\n",
    stderr: "",
  });
  t.strictSame(JSON.parse((await runProgram(service, "statements", ["verify", "--json"])).stdout), {
    checked: 6,
    wrong: [],
  });
  fits(t, await runProgram(service, "statements", []), { code: 2, stdout: "", stderr: /\nusage: / });

  const superuser = openSession(service.address, { name: "coupon test" });
  t.teardown(() => superuser.end());
  await superuser.run("set session_replication_role = replica");
  await spoil(superuser, parties);
  const { code, stdout } = await runProgram(service, "statements", ["verify"]);
  t.equal(code, 1);
  const document = await runProgram(service, "statements", ["verify", "--json"]);
  const { checked, wrong } = JSON.parse(document.stdout) as { checked: number; wrong: Verdict[] };
  t.strictSame({ code: document.code, checked }, { code: 1, checked: 6 });
  t.equal(
    wrong.flatMap(({ statement, differences }) => differences.map((each) => `${statement}: ${each}\n`)).join(""),
    stdout.slice(0, stdout.indexOf("6 statements checked")),
    "the document has the differences of the text",
  );
  const lines = stdout.trimEnd().split("\n");
  t.equal(lines.pop(), "6 statements checked, 5 differ");
  const differencesOf = (party: string) =>
    lines
      .filter((line) => line.includes(` ${party} `))
      .map((line) => line.replace(/^.*?: /, "").replace(/[0-9a-f]{64}/g, "#"));
  t.strictSame(differencesOf(parties[0]!), [
    "detail.csv: sha256 is #, was # when it was finished",
    "summary.csv has 2/1470 redeemed and 1/-735 reversed (count/minor units) for mch_many tpl_one EUR, " +
      "the ledger has 2/1471 redeemed and 1/-735 reversed (count/minor units)",
  ]);
  fits(t, differencesOf(parties[1]!), [/^detail\.csv: bytes is \d+, was \d+/, /^detail\.csv: sha256 is/]);
  fits(t, differencesOf(parties[2]!), [
    /^detail\.csv: rows is 2, was 3/,
    /^detail\.csv: bytes is/,
    /^detail\.csv: sha256 is/,
    /^summary\.csv has 2\/1470 .* the ledger has 2\/1470 redeemed and 0\/0 reversed/,
  ]);
  fits(t, differencesOf(parties[3]!), [/^summary\.csv: sha256 is/, /^summary\.csv has .* 2\/-735 reversed/]);
  const [sums, nothing] = ["2/1470 redeemed and 1/-735 reversed (count/minor units)", "nothing"];
  t.strictSame(differencesOf(parties[4]!), [
    "summary.csv: sha256 is #, was # when it was finished",
    `summary.csv has ${nothing} for mch_many tpl_one EUR, the ledger has ${sums}`,
    `summary.csv has ${sums} for mch_many tpl_one USD, the ledger has ${nothing}`,
  ]);
  t.strictSame(differencesOf(parties[5]!), []);
});

t.test("list shows statements newest first, as a table and as JSON", async (t) => {
  const { service, books, parties, end } = await startStatementFixture(t, 2);
  await end(parties[0]!);
  await end(parties[1]!);
  await books.close();
  const rows = await service.owner.rows<Record<string, unknown>>(
    `select tenant, distributor, business_date::text, closed_at, ready_at, entry_count, detail_bytes::int,
            summary_rows, summary_bytes::int
     from report.statement order by business_date desc, distributor`,
  );
  const expected: Record<string, unknown>[] = rows.map((row) => ({
    ...row,
    closed_at: toIso(row["closed_at"]),
    ready_at: toIso(row["ready_at"]),
  }));
  const list = async (...args: string[]) => (await runProgram(service, "statements", ["list", ...args])).stdout;
  t.equal(rows.length, 2);
  t.strictSame(JSON.parse(await list("--json")), expected);
  t.strictSame(JSON.parse(await list("ten_many", parties[1]!, "--json")), [
    expected.find(({ distributor }) => distributor === parties[1]),
  ]);
  t.strictSame(JSON.parse(await list("--limit", "1", "--json")), expected.slice(0, 1));
  t.equal(await list("ten_other", "--json"), "[]\n");
  const lines = (await list()).trimEnd().split("\n");
  t.strictSame(
    lines.map((line) => line.split(/ +/)),
    [Object.keys(expected[0]!), ...expected.map((row) => Object.values(row).map(String))],
  );
});

const toIso = (at: unknown): string => (at as Date).toISOString();

t.test("verify checks every statement, however many pages their list has", async (t) => {
  const days = 60;
  const fixture = await startStatementFixture(t, 2, { mayBreakInvariants: true });
  const { service, books, parties } = fixture;
  const superuser = openSession(service.address, { name: "coupon test" });
  t.teardown(() => superuser.end());
  await superuser.run("set session_replication_role = replica");
  // Nobody closed the books for two months.
  await superuser.rows(`update core.ledger_book set open_on = open_on - ${days}`);
  await books.close();
  t.strictSame(books.errors, []);
  const statements = await service.owner.rows<{ name: string }>(
    `select format('ten_many %s %s', p.external_id, s.business_date) as name
     from core.statement s join core.party p on p.tenant_id = s.tenant_id and p.party_id = s.distributor_id
     order by s.distributor_id, s.business_date`,
  );
  t.equal(statements.length, parties.length * days, "more than a page of 100");
  const { stdout } = await runProgram(service, "statements", ["list", "--limit", "3", "--json"]);
  const listed = JSON.parse(stdout) as { tenant: string; distributor: string; business_date: string }[];
  t.strictSame(
    listed.map(({ tenant, distributor, business_date }) => `${tenant} ${distributor} ${business_date}`),
    [days - 1, 2 * days - 1, days - 2].map((index) => statements[index]!.name),
    "list shows the last day of both, then the day before",
  );
  const check = () => Array.fromAsync(verify(service.admin));
  t.strictSame(
    await check(),
    statements.map(({ name }) => ({ statement: name, differences: [] })),
    "each once, in order",
  );

  await superuser.run(
    `update core.statement s set summary_bytes = summary_bytes + 1
     where (s.distributor_id, s.business_date)
           = (select distributor_id, business_date from core.statement order by 1 desc, 2 desc limit 1)`,
  );
  t.strictSame(
    (await check()).filter(({ differences }) => differences.length > 0).map(({ statement }) => statement),
    [statements.at(-1)!.name],
    "also the last one",
  );
});
