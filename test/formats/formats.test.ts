// What the database sends, as texts: IDs, and the lines of a statement's files.
import { createHash, randomUUID } from "node:crypto";
import t from "tap";
import { renderGrant, type Grant } from "../../src/gate/answer.ts";
import { drawTails, externalId } from "../../src/formats/id.ts";
import { printable, replaceUnprintable } from "../../src/formats/field-types.ts";
import { type Kind, type Line, linesPerPage, measureFile, renderFile } from "../../src/formats/statement-csv.ts";
import { openScratchDatabase } from "../support/database.ts";
import { fits } from "../support/fits.ts";

// The first is the example of the TypeID specification.
const known = new Map([
  ["01890a5d-ac96-774b-bcce-b302099a8057", "01h455vb4pex5vsknk084sn02q"],
  ["00000000-0000-0000-0000-000000000000", "00000000000000000000000000"],
  ["ffffffff-ffff-ffff-ffff-ffffffffffff", "7zzzzzzzzzzzzzzzzzzzzzzzzz"],
]);

t.test("SQL and TypeScript write IDs alike, and SQL reads them back", async (t) => {
  const session = await openScratchDatabase(t);
  const uuids = [...known.keys(), ...Array.from({ length: 500 }, () => randomUUID())];
  const text = `select x.id, rules.parse_id('red', x.id)::text as back, core.format_id('red', u.uuid) as in_messages
     from unnest($1::uuid[]) with ordinality u (uuid, place),
       lateral (select rules.format_id('red', u.uuid) as id offset 0) x
     order by u.place`;
  const expected = uuids.map((uuid) => ({
    id: externalId("red", uuid),
    back: uuid,
    in_messages: externalId("red", uuid),
  }));
  const read = async () => (await session.rows(text, [uuids])).map((row) => ({ ...row }));
  t.strictSame(await read(), expected);
  for (const [index, id] of [...known.values()].entries()) t.equal(expected[index]!.id, `red_${id}`);
  await session.run("set standard_conforming_strings = off");
  t.strictSame(await read(), expected, "also with standard_conforming_strings off");
});

t.test("SQL and TypeScript write the answer to a grant alike", async (t) => {
  const session = await openScratchDatabase(t);
  const columns = "redemption_id, coupon_id, discount_amount, currency, lock_expires_at";
  const rows = await session.rows<Grant & { text: string }>(
    `select ${columns}, rules.render_grant(
       redemption_id, coupon_id, discount_amount, currency, rules.format_time(lock_expires_at)) as text
     from unnest($1::numeric[], $2::timestamptz[]) g (discount_amount, lock_expires_at),
       lateral (select gen_random_uuid() as redemption_id, gen_random_uuid() as coupon_id, 'EUR' as currency) i`,
    [
      ["0", "0.00", "19.90", "999999999999", "0.0001"],
      [null, "2026-01-02 03:04:05.678999+00", "2026-01-02 03:04:05+00", "1999-12-31 23:59:59.9995+00", null],
    ],
  );
  t.equal(rows.length, 5);
  for (const { text, ...grant } of rows) t.equal(renderGrant(grant), text);
});

t.test("The bytes that we draw for IDs have the version and the variant of a UUIDv7", (t) => {
  const tails = drawTails(100).toString("hex").match(/.{20}/g)!;
  t.equal(new Set(tails).size, 100);
  for (const tail of tails) t.match(tail, /^7...[89ab]/);
  t.end();
});

t.test("SQL and TypeScript refuse the same characters: of all code points, those that nobody can see", async (t) => {
  const session = await openScratchDatabase(t);
  const one = printable(1);
  const inTypeScript: number[] = [];
  // PostgreSQL stores neither NUL nor surrogates.
  for (let code = 1; code < 0x11_0000; code += code === 0xd7ff ? 0x801 : 1)
    if (replaceUnprintable(String.fromCodePoint(code)) === "") inTypeScript.push(code);
  const [inSql] = await session.rows<{ codes: string }>(
    `select string_agg(c::text, ',' order by c) as codes
     from generate_series(1, 1114111) c
     where c not between 55296 and 57343 and not core.is_printable('x' || chr(c))`,
  );
  t.ok(inSql!.codes === inTypeScript.join());
  for (const text of ["\0", "\ud800", "\n", "\u2028", "\u202e", "\u2066", "\u200b", "\ufeff", "\ue000"])
    t.notOk(one.safeParse(text).success, `U+${text.charCodeAt(0).toString(16)}`);
  const shown = [
    "\u0dc1\u0dca\u200d\u0dbb\u0dd3",
    "\u0645\u06cc\u200c\u062e",
    "co\u00adop",
    "👨‍👩‍👧",
    "🏴\u{e0067}\u{e0062}\u{e007f}",
  ];
  for (const text of [...shown, "\u{323b0}"]) t.ok(printable(9).safeParse(text).success, text);
});

t.test("the time of an ID is when it was made, also in an old transaction", async (t) => {
  const session = await openScratchDatabase(t);
  await session.run("begin; select pg_sleep(0.02)");
  const [row] = await session.rows<{ after: number; before: number }>(
    `select (m.ms - extract(epoch from now()) * 1000)::float as after,
            (extract(epoch from clock_timestamp()) * 1000 - m.ms)::float as before
     from (select ('x' || translate(left(rules.make_id()::text, 13), '-', ''))::bit(48)::bigint as ms offset 0) m`,
  );
  t.ok(row!.after > 19 && row!.before > -1, JSON.stringify(row));
});

const uuid = (last: string) => `01890a5d-ac96-774b-bcce-b3020000000${last}`;
const external = (prefix: string, last: string) => `${prefix}_01h455vb4pex5vsknk0800000${last}`;

async function render(kind: Kind, lines: Line[]) {
  const asked: [after: number, limit: number][] = [];
  const readPage = async (after: number, limit: number) => {
    asked.push([after, limit]);
    return lines.filter(({ number }) => number > after).slice(0, limit);
  };
  const pieces = await Array.fromAsync(renderFile(kind, readPage));
  const text = Buffer.concat(pieces.map(({ bytes }) => bytes)).toString("utf8");
  return { text, rows: pieces.map(({ rows }) => rows), asked: [...asked], measured: await measureFile(kind, readPage) };
}

const detailHead =
  "business_date,entry_id,entry_type,redemption_id,reversal_id,coupon_id,batch_id,template_id,merchant_id,store," +
  "terminal,order_id,order_amount,discount_amount,currency,occurred_at,recorded_at,distributor_id\r\n";
const summaryHead =
  "business_date,merchant_id,template_id,currency,redemption_count,redemption_amount,reversal_count,reversal_amount," +
  "net_amount,distributor_id\r\n";

t.test("a line of detail has IDs, times in milliseconds, and only free texts that no spreadsheet runs", async (t) => {
  const redemption = ["2026-11-22", uuid("1"), "REDEMPTION", uuid("2"), null, uuid("3"), "bat_x", "tpl_x", "=mch"];
  const reversal = ["2026-11-22", uuid("4"), "REVERSAL", uuid("5"), uuid("6"), uuid("7"), "bat_x", "tpl_x", "mch_x"];
  const lines = [
    {
      number: 1,
      fields: [...redemption, "=S", "+T", '-"1"', "10.00", "-5.00", "EUR", "1767225600123999", "1767225600124000", "d"],
    },
    { number: 2, fields: [...reversal, null, "till =2", "a,b", null, "5.00", "EUR", "1", "999", "pty_d"] },
  ];
  const { text, rows } = await render("detail", lines);
  t.equal(
    text,
    `${detailHead}2026-11-22,${external("led", "1")},REDEMPTION,${external("red", "2")},,` +
      `${external("cpn", "3")},bat_x,tpl_x,=mch,'=S,'+T,"'-""1""",10.00,-5.00,EUR,` +
      "2026-01-01T00:00:00.123Z,2026-01-01T00:00:00.124Z,d\r\n" +
      `2026-11-22,${external("led", "4")},REVERSAL,${external("red", "5")},${external("rvs", "6")},` +
      `${external("cpn", "7")},bat_x,tpl_x,mch_x,,till =2,"a,b",,5.00,EUR,` +
      "1970-01-01T00:00:00.000Z,1970-01-01T00:00:00.000Z,pty_d\r\n",
  );
  t.strictSame(rows, [2]);
});

t.test("a file without lines is its header; pages follow each other until one is not full", async (t) => {
  const nothing = await render("detail", []);
  t.strictSame([nothing.text, nothing.rows], [detailHead, [0]]);
  fits(t, nothing.measured, { rows: 0, bytes: detailHead.length });
  for (const count of [linesPerPage - 1, linesPerPage, linesPerPage + 1, 2 * linesPerPage]) {
    const lines = Array.from({ length: count }, (_, index) => ({ number: 10 * (index + 1), fields: [`ü${index}`] }));
    const { text, rows, asked, measured } = await render("summary", lines);
    t.equal(text, `${summaryHead}${lines.map(({ fields }) => `${fields[0]}\r\n`).join("")}`);
    const full = Array<number>(Math.floor(count / linesPerPage)).fill(linesPerPage);
    const rest = count % linesPerPage;
    t.strictSame(rows, rest === 0 ? full : [...full, rest], "no empty piece");
    t.strictSame(
      asked,
      [0, ...full].map((_, page) => [10 * page * linesPerPage, linesPerPage]),
    );
    const sha256 = createHash("sha256").update(text).digest("hex");
    t.strictSame(measured, { rows: count, bytes: Buffer.byteLength(text), sha256 });
  }
});

t.test("a page that cannot be read fails the file, also while the page before it is written", async (t) => {
  const page = Array.from({ length: linesPerPage }, (_, index) => ({ number: index + 1, fields: ["x"] }));
  const fail = async (after: number) => {
    if (after > 0) throw new Error("no database");
    return page;
  };
  const seen: number[] = [];
  const read = async () => {
    for await (const { rows } of renderFile("summary", fail)) seen.push(rows);
  };
  await t.rejects(read(), { message: "no database" });
  t.strictSame(seen, [linesPerPage]);
});
