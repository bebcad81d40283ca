// What the questions of docs/reports must answer about the story, from the books. Each answer is about everything that
// the question reads when today is that date.
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import type { Test } from "tap";
import { root } from "../support/copy.ts";
import { compare, major, minorOf, pick, shift, uuidOf, type Books, type Row, type Window } from "./books.ts";
import { sumUp } from "./days.ts";
import { percentile } from "./reports.ts";
import type { Teller } from "./teller.ts";

const folder = path.join(root, "docs/reports");

/** The text of each question, by the name of its file without .sql. */
export const questions: Record<string, string> = Object.fromEntries(
  readdirSync(folder)
    .filter((name) => name.endsWith(".sql"))
    .map((name) => [name.slice(0, -4), readFileSync(path.join(folder, name), "utf8").trim().replace(/;$/, "")]),
);

/** `today` is a date, as in "2026-11-28". */
type Answer = (books: Books, today: string) => Row[];

const daySeconds = 86_400;
export const dateAfter = (date: string, days: number): string =>
  new Date(Date.parse(date) + days * daySeconds * 1_000).toISOString().slice(0, 10);
const dateOf = ({ from }: Window): string => new Date(from * 1_000).toISOString().slice(0, 10);
// In seconds since 1970.
const startOf = (today: string, days: number): number => Date.parse(dateAfter(today, -days)) / 1_000;
const percent = (part: number, whole: number): string | null =>
  whole === 0 ? null : (Math.round((1_000 * part) / whole) / 10).toFixed(1);
const groupBy = (rows: Row[], columns: string): [Row, Row[]][] =>
  [...Map.groupBy(rows, (row) => JSON.stringify(pick(row, columns)))].map(([key, group]) => [JSON.parse(key), group]);
const count = (rows: Row[], ...statuses: string[]): number =>
  rows.filter(({ status }) => statuses.includes(status)).length;
const sum = (rows: Row[], column: string): number => rows.reduce((total, row) => total + minorOf(row[column]), 0);

/** Locks and redemptions since that many days. The key of a redemption begins with the milliseconds of its start. */
const listStarted = (books: Books, today: string, days: number): Row[] =>
  books.of("redemption").filter(({ redemption }) => {
    const milliseconds = Number.parseInt(uuidOf(redemption).replaceAll("-", "").slice(0, 12), 16);
    return milliseconds / 1_000 >= startOf(today, days);
  });

/** Names of sumUp, and what the questions call them. */
const amounts = `redemptions=redemption_count reversals=reversal_count redeemed=redemption_amount
  reversed=reversal_amount net=net_amount`;

export const answers: Record<string, Answer> = {
  "abandoned-locks": (books, today) =>
    groupBy(
      listStarted(books, today, 30).filter(({ lock_expires_at }) => lock_expires_at !== null),
      "tenant merchant store",
    ).map(([key, locks]) => {
      const ended = count(locks, "CANCELLED", "LAPSED");
      const live = count(locks, "LOCKED");
      return {
        ...key,
        locks: String(locks.length),
        confirmed: String(count(locks, "REDEEMED", "REVERSED")),
        cancelled: String(count(locks, "CANCELLED")),
        expired: String(count(locks, "LAPSED")),
        live: String(live),
        percent_abandoned: percent(ended, locks.length - live),
      };
    }),

  balances(books, today) {
    const from = dateAfter(today, -30);
    const of = (isWanted: (date: string) => boolean) => {
      const makerOf = (row: Row) =>
        books.of("template").find((one) => one.tenant === row.tenant && one.template === row.template)!.maker;
      const rows = books.of("posting").filter(({ business_date }) => isWanted(business_date));
      return sumUp(
        rows.map((row) => ({ ...row, maker: makerOf(row) })),
        "tenant distributor maker currency",
      );
    };
    return of((date) => date <= today).map((row) => {
      const columns = "tenant distributor maker currency";
      const nameOf = (one: Row) => JSON.stringify(pick(one, columns));
      const find = (rows: Row[]) => rows.find((one) => nameOf(one) === nameOf(row));
      const before = find(of((date) => date < from));
      const within = find(of((date) => date >= from && date <= today));
      return {
        ...pick(row, columns),
        opening: before?.net_amount ?? "0",
        redeemed: within?.redemption_amount ?? "0",
        reversed: within?.reversal_amount ?? "0",
        closing: row.net_amount,
      };
    });
  },

  "discount-by-merchant"(books, today) {
    const first = new Date(`${today.slice(0, 7)}-01`);
    first.setUTCMonth(first.getUTCMonth() - 11);
    const rows = books
      .of("posting")
      .filter(({ business_date }) => Date.parse(business_date) >= first.getTime())
      .map((row) => ({ ...row, month: `${row.business_date.slice(0, 7)}-01` }));
    return sumUp(rows, "tenant merchant month currency").map((row) =>
      pick(row, `tenant merchant month currency ${amounts}`),
    );
  },

  reconciliation(books, today) {
    const isOfDay = (row: Row) => row.business_date >= dateAfter(today, -2);
    return books
      .of("statement")
      .filter((row) => row.ready_at && isOfDay(row))
      .flatMap((day) => {
        const columns = "tenant distributor business_date";
        const nameOf = (row: Row) => JSON.stringify(pick(row, columns));
        const entries = books.of("posting").filter((row) => nameOf(row) === nameOf(day));
        return sumUp(entries, `${columns} currency`).map((row) => {
          const count = String(Number(row.redemption_count) + Number(row.reversal_count));
          return {
            ...pick(row, `${columns} currency statement_net=net_amount ledger_net=net_amount`),
            statement_entries: count,
            ledger_entries: count,
            difference: major(0, row.currency),
          };
        });
      });
  },

  refusals(books, today) {
    const isRefusal = ({ operation, code, first_request_id, recorded_at }: Row) =>
      /^(lock|redeem)$/.test(operation) && code && !first_request_id && recorded_at.from >= startOf(today, 30);
    const refused = books.of("request").filter(isRefusal);
    const started = listStarted(books, today, 30);
    return groupBy(refused, "tenant merchant code").map(([key, rows]) => {
      const isOwn = ({ tenant, merchant }: Row) => tenant === key.tenant && merchant === key.merchant;
      const calls = refused.filter(isOwn).length + started.filter(isOwn).length;
      return { ...key, refusals: String(rows.length), percent: percent(rows.length, calls) };
    });
  },

  reversals(books, today) {
    const rows = books.of("posting").filter(({ business_date }) => business_date > dateAfter(today, -30));
    return sumUp(rows, "tenant merchant store currency")
      .filter(({ reversal_count }) => reversal_count !== "0")
      .map((row) => ({
        ...pick(row, "tenant merchant store currency redemptions=redemption_count reversals=reversal_count"),
        percent_reversed: percent(Number(row.reversal_count), Number(row.redemption_count)),
        reversed: row.reversal_amount.replace("-", ""),
      }));
  },

  "time-to-redemption"(books, today) {
    const redeemed = listStarted(books, today, 7).filter(({ redeemed_at }) => redeemed_at);
    return groupBy(redeemed, "tenant template").map(([key, rows]) => {
      const days = rows.map(({ tenant, batch, redeemed_at }) => {
        const of = books.of("batch").find((one) => one.tenant === tenant && one.batch === batch)!;
        return (redeemed_at.from - of.allocated_at.from) / daySeconds;
      });
      return {
        ...key,
        redemptions: String(rows.length),
        median_days: percentile(days, 0.5).toFixed(1),
        p90_days: percentile(days, 0.9).toFixed(1),
        percent_in_first_week: percent(days.filter((one) => one < 7).length, days.length),
      };
    });
  },

  "top-templates"(books, today) {
    const kept = listStarted(books, today, 7).filter(({ status }) => status === "REDEEMED");
    return groupBy(kept, "tenant template currency").map(([key, rows]) => {
      const known = rows.filter(({ order_amount }) => order_amount !== null);
      return {
        ...key,
        redemptions: String(rows.length),
        net: major(sum(rows, "discount_amount"), key.currency),
        average_percent: percent(sum(known, "discount_amount"), sum(known, "order_amount")),
      };
    });
  },

  "use-of-batches": (books, today) =>
    books
      .of("batch")
      .filter(({ allocated_at }) => allocated_at)
      .map((row) => ({
        ...pick(row, "tenant batch template maker distributor currency coupons=minted_count used=redeemed_count"),
        ...pick(row, "expired=expired_count voided=voided_count net=net_amount still_owed=liability_amount"),
        age_days: String((Date.parse(today) - Date.parse(dateOf(row.allocated_at))) / daySeconds / 1_000),
        valid_to: dateOf(row.valid_to),
        percent_used: percent(Number(row.redeemed_count), Number(row.minted_count)),
        unused: String(Number(row.issued_count) + Number(row.locked_count)),
      })),

  "webhook-delivery"(books, today) {
    const tried = books
      .of("delivery_attempt")
      .filter(({ event, attempted_at }) => event && attempted_at.from >= startOf(today, 7));
    return groupBy(tried, "tenant party").map(([key, attempts]) => {
      const isOwn = ({ tenant, party }: Row) => tenant === key.tenant && party === key.party;
      const accepted = attempts.filter(({ http_status }) => http_status?.startsWith("2"));
      const failures = attempts.length - accepted.length;
      const waits = accepted.map(({ event, attempted_at }): Window => {
        const { recorded_at } = books.of("event").find((one) => one.tenant === key.tenant && one.event === event)!;
        return { from: attempted_at.from - recorded_at.to, to: attempted_at.to - recorded_at.from };
      });
      const p95 = (side: "from" | "to") =>
        percentile(
          waits.map((wait) => wait[side]),
          0.95,
        );
      const times = attempts.map(({ duration_ms }) => Number(duration_ms)).toSorted((one, other) => one - other);
      const median = times[Math.ceil(0.5 * times.length) - 1];
      return {
        ...key,
        attempts: String(attempts.length),
        failures: String(failures),
        percent_failed: percent(failures, attempts.length),
        median_ms: String(median),
        p95_ms: String(times[Math.ceil(0.95 * times.length) - 1]),
        // Rounded to a tenth.
        p95_seconds: waits.length === 0 ? null : { from: p95("from") - 0.05, to: p95("to") + 0.05 },
        parked: String(count(books.of("delivery").filter(isOwn), "PARKED")),
      };
    });
  },
};

/**
 * Makes the story longer, in a transaction that the test undoes: batches were released days before their redemptions,
 * and some tills sent no order_amount. No tenant is a sandbox any more. Returns the books of that story.
 */
export async function stretchStory({ psql, books: told, owners }: Teller): Promise<Books> {
  const views = structuredClone(told.views);
  const books: Books = { ...told, views, of: (view) => views[view] ?? [] };
  const numbers = [...new Map(owners.map(({ tenant, number }) => [tenant, number]))];
  for (const [index, [tenant, number]] of numbers.entries()) {
    const isOwn = (row: Row) => row.tenant === tenant;
    // The .02 keeps the seconds of the story away from where a day is rounded.
    const days = [8.02, 9.02, 4.02, 12.02][index]!;
    await psql.rows("update core.tenant set is_sandbox = false where tenant_id = $1", [number]);
    const release =
      "update core.batch set allocated_at = allocated_at - make_interval(secs => $2) where tenant_id = $1";
    await psql.rows(release, [number, days * daySeconds]);
    for (const batch of books.of("batch").filter((row) => isOwn(row) && row.allocated_at))
      batch.allocated_at = shift(batch.allocated_at, -days * daySeconds);
    const redeemed = books.of("redemption").filter((row) => isOwn(row) && row.redeemed_at);
    for (const [, rows] of groupBy(redeemed, "template")) {
      const withoutOrder = rows.find(({ status }) => status === "REDEEMED");
      for (const [at, row] of rows.entries()) {
        const hasOrder = row !== withoutOrder;
        await psql.rows(
          `update core.redemption r
           set started_at = x.started_at, lock_expires_at = x.lock_expires_at, redeemed_at = x.redeemed_at,
               order_minor = case when $4 then r.order_minor end
           from (
             select redemption_id, tenant_id, started_at - make_interval(days => $3) as started_at,
                    lock_expires_at - make_interval(days => $3) as lock_expires_at,
                    redeemed_at - make_interval(days => $3) as redeemed_at
             from core.redemption) x
           where r.tenant_id = $1 and r.redemption_id = $2::text::uuid
             and x.tenant_id = r.tenant_id and x.redemption_id = r.redemption_id`,
          [number, uuidOf(row.redemption), 2 * at, hasOrder],
        );
        row.redeemed_at = shift(row.redeemed_at, -2 * at * daySeconds);
        if (!hasOrder) row.order_amount = null;
      }
    }
  }
  return books;
}

/** What the reconciliation must show once each line of a statement has so much more. */
export const addToLines = (books: Books, answer: Row[], minor: number): Row[] =>
  answer.map((row) => {
    const isOf = (line: Row) =>
      "tenant distributor business_date currency".split(" ").every((name) => line[name] === row[name]);
    const more = minor * books.of("statement_line").filter(isOf).length;
    return {
      ...row,
      statement_net: major(minorOf(row.statement_net) + more, row.currency),
      difference: major(more, row.currency),
    };
  });

/** Asks as coupon_report in the transaction of psql. Values are text, except those that are compared with a window. */
export async function ask({ psql }: Teller, name: string, text: string): Promise<Row[]> {
  await psql.run("set local time zone 'UTC'; set local role coupon_report");
  const rows = await psql.rows<{ line: Row }>(
    `select (select json_object_agg(e.key, e.value) from json_each_text(to_json(q)) e) as line from (${text}) q`,
  );
  await psql.run("reset role");
  return rows.map(({ line }) => {
    const { p95_seconds = null } = line;
    return name === "webhook-delivery" ? { ...line, p95_seconds: p95_seconds && Number(p95_seconds) } : { ...line };
  });
}

/** Compares the rows in any order. */
export function compareAnswers(t: Test, seen: Row[], wanted: Row[], what: string): void {
  const isText = ([, value]: [string, unknown]) => typeof value === "string" && !/^[\d.-]+$/.test(value);
  const nameOf = (row: Row) => JSON.stringify(Object.entries(row).filter(isText).toSorted());
  const order = (rows: Row[]) => rows.toSorted((one, other) => (nameOf(one) < nameOf(other) ? -1 : 1));
  compare(t, order(seen), order(wanted), what);
}
