// The bytes of a statement's file, from the values that the database sends.
import { createHash } from "node:crypto";
import t from "tap";
import { type Kind, type Line, linesPerPage, measureFile, renderFile } from "../../src/common/statement-csv.ts";
import { fits } from "../support/fits.ts";

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

t.test("a summary is written as it comes, and a file without lines is its header", async (t) => {
  const fields = ["2026-11-22", "mch_x", "tpl_x", "EUR", "2", "10.00", "1", "-5.00", "5.00", "pty_d"];
  t.equal((await render("summary", [{ number: 1, fields }])).text, `${summaryHead}${fields.join()}\r\n`);
  t.equal((await render("summary", [])).text, summaryHead);
  const { text, rows, measured } = await render("detail", []);
  t.strictSame([text, rows], [detailHead, [0]]);
  fits(t, measured, { rows: 0, bytes: detailHead.length });
});

t.test("pages follow each other until one is not full, and the measure is that of all of them", async (t) => {
  for (const count of [linesPerPage - 1, linesPerPage, linesPerPage + 1, 2 * linesPerPage]) {
    const lines = Array.from({ length: count }, (_, index) => ({ number: 10 * (index + 1), fields: [`ü${index}`] }));
    const { text, rows, asked, measured } = await render("summary", lines);
    t.equal(text, `${summaryHead}${lines.map(({ fields }) => `${fields[0]}\r\n`).join("")}`);
    const full = Array<number>(Math.floor(count / linesPerPage)).fill(linesPerPage);
    t.strictSame(rows, count % linesPerPage === 0 ? full : [...full, count % linesPerPage], "no empty piece");
    const pages = Math.floor(count / linesPerPage) + 1;
    t.strictSame(
      asked,
      Array.from({ length: pages }, (_, page) => [10 * page * linesPerPage, linesPerPage]),
    );
    t.strictSame(measured, {
      rows: count,
      bytes: Buffer.byteLength(text),
      sha256: createHash("sha256").update(text).digest("hex"),
    });
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
