// What the reports and the metrics must show: each row and column of the report views, and the samples of the metrics
// of the background work, by name with labels.
import type { Test } from "tap";
import { openSession } from "../../src/database/connect.ts";
import { compare, first, major, minorOf, pick, uuidOf, type Books, type Row, type Window } from "./books.ts";
import { sumUp } from "./days.ts";
import type { Teller } from "./teller.ts";
import type { Owner } from "./tenants.ts";

/** Views that follow from other rows of the books. */
export function enterDerived({ books }: Teller): void {
  enterSums(books);
  for (const row of books.of("redemption")) {
    const isOwn = ({ tenant, coupon }: Row) => tenant === row.tenant && coupon === row.coupon;
    Object.assign(row, pick(books.of("coupon").find(isOwn)!, "batch template"));
  }
  books.views.webhook_health = books.of("webhook").map((webhook) => showHealth(books, webhook));
  for (const { tenant, party, disabled_at = null, rotated_at = null } of books.of("webhook")) {
    const row = books.of("party").find((one) => one.tenant === tenant && one.party === party)!;
    Object.assign(row, { webhook_disabled_at: disabled_at, webhook_secret_rotated_at: rotated_at });
  }
  for (const [index, row] of books.of("audit").entries()) row.audit_id = String(index + 1);
  for (const [index, row] of books.of("delivery_attempt").entries()) row.attempt_id = String(index + 1);
}

// Views whose comments name no key.
const keys: Record<string, string> = {
  daily_store: "tenant,distributor,business_date,merchant,store,currency",
  delivery_attempt: "attempt_id",
  request: "tenant,caller,request_id",
};

/** The views of the catalog, and a way to compare one of them with the books. A report reader reads them. */
export async function openReader(t: Test, teller: Teller) {
  const session = openSession(teller.world.address, { name: "coupon test reader", role: "coupon_report" });
  t.teardown(() => session.end());
  // No index, because an index would return lists in order.
  await session.run(
    "set time zone 'UTC'; set enable_indexscan = off; set enable_indexonlyscan = off; set enable_bitmapscan = off",
  );
  const rows = await session.rows<{ view: string; name: string; key: string | null }>(
    `select c.relname::text as view, a.attname::text as name,
            substring(obj_description(c.oid, 'pg_class') from '@primaryKey (\\S+)') as key
     from pg_class c
     join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
     where c.relnamespace = 'report'::regnamespace and c.relkind = 'v'
     order by c.relname, a.attnum`,
  );
  const views = Map.groupBy(rows, ({ view }) => view);

  /** `from`: a function that returns some rows of the view. Returns the columns that have no value anywhere. */
  async function compareView(t: Test, view: string, some = teller.books.of(view), from = view): Promise<string[]> {
    // Without HTTP the files of statements are not downloaded.
    const isKnown = (name: string) => teller.world.url !== "" || !/_(bytes|sha256)$/.test(name);
    const columns = views
      .get(view)!
      .map(({ name }) => name)
      .filter(isKnown);
    const key = (keys[view] ?? views.get(view)![0]!.key ?? "invariant").split(",");
    const nameOf = (row: Row) => key.map((column) => row[column]).join(" ");
    const order = (rows: Row[]) => rows.toSorted((one, other) => (nameOf(one) < nameOf(other) ? -1 : 1));
    const expected = order(some.map((row) => completeRow(row, columns, teller.owners)));
    const shown = columns.map((name) => `${name}::text`).join(", ");
    const seen = order([...(await session.rows<Row>(`select ${shown} from report.${from}`))]);
    compare(t, seen, expected, `report.${from}`);
    return columns.filter((name) => expected.every((row) => row[name] === null)).map((name) => `${view}.${name}`);
  }
  return { views: [...views.keys()], compareView };
}

// The columns of the view: what follows from others, and null for what the books do not name.
function completeRow(row: Row, columns: string[], owners: Owner[]): Row {
  const cells = columns.map((name) => {
    const id = name.endsWith("_key") ? row[name.slice(0, -4)] : null;
    const number = name === "tenant_id" ? String(owners.find(({ tenant }) => tenant === row.tenant)!.number) : null;
    return [name, row[name] ?? (id && uuidOf(id)) ?? number];
  });
  return Object.fromEntries(cells);
}

// Each entry counts for the day to which it was posted.
function enterSums(books: Books): void {
  for (const owner of ["maker", "merchant", "distributor"])
    books.views[`${owner}_balance`] = sumUp(books.of("ledger"), `tenant ${owner} currency`).map(
      ({ net_amount: balance, ...row }) => ({ ...row, balance }),
    );
  const nameOf = (row: Row) => Object.values(pick(row, "tenant distributor business_date")).join(" ");
  const closed = new Set(books.of("statement").map(nameOf));
  const makerOf = (row: Row) => books.of("template").find(({ template }) => template === row.template)!.maker;
  const posted = books.of("posting").map((row) => ({ ...row, maker: makerOf(row) }));
  const sumDays = (columns: string) =>
    sumUp(posted, `tenant distributor business_date ${columns} currency`).map((row) => ({
      ...row,
      is_closed: String(closed.has(nameOf(row))),
    }));
  books.views["daily"] = sumDays("merchant template maker");
  books.views["daily_store"] = sumDays("merchant store");
  books.views["daily_distributor"] = sumDays("");
  books.views["daily_batch"] = sumDays("batch template maker");
  for (const batch of books.of("batch")) Object.assign(batch, countCoupons(books, batch));
  books.views["liability"] = [...Map.groupBy(books.of("batch"), nameOfLiability).values()].map((batches) => {
    const of = (column: string, some = batches) => some.reduce((sum, row) => sum + Number(row[column]), 0);
    const unlimited = batches.filter(({ liability_amount }) => liability_amount === null);
    const minor = batches.reduce((sum, row) => sum + minorOf(row.liability_amount ?? "0"), 0);
    return {
      ...pick(batches[0]!, "tenant currency"),
      coupon_count: String(of("usable")),
      liability_amount: major(minor, batches[0]!.currency),
      unlimited_count: String(of("usable", unlimited)),
    };
  });
}

const nameOfLiability = ({ tenant, currency }: Row) => `${tenant} ${currency}`;

// `usable` is no column: it is for the liability.
function countCoupons(books: Books, { tenant, batch, template, status, recalled_at }: Row): Row {
  const isOwn = (row: Row) => row.tenant === tenant && row.batch === batch;
  const coupons = books.of("coupon").filter(isOwn);
  const count = (...some: string[]) => coupons.filter((row) => some.includes(row.status)).length;
  const terms = books.of("template").find((row) => row.tenant === tenant && row.template === template)!;
  const { currency, discount_amount, max_discount_amount } = terms;
  const most = discount_amount ?? max_discount_amount ?? null;
  const usable = status === "ALLOCATED" ? count("LOCKED", recalled_at ? "LOCKED" : "ISSUED") : 0;
  const none = { redemption_count: "0", reversal_count: "0", net_amount: major(0, currency) };
  const [sums = none] = sumUp(books.of("ledger").filter(isOwn), "currency");
  return {
    ...pick(sums, "redemption_count reversal_count net_amount"),
    currency,
    issued_count: String(count("ISSUED", "CREATED")),
    locked_count: String(count("LOCKED")),
    redeemed_count: String(count("REDEEMED")),
    expired_count: String(count("EXPIRED")),
    voided_count: String(count("VOIDED")),
    liability_amount: most === null ? null : major(usable * minorOf(most), currency),
    usable: String(usable),
  };
}

function showHealth(books: Books, webhook: Row): Row {
  const isOwn = ({ tenant, party }: Row) => tenant === webhook.tenant && party === webhook.party;
  const own = books.of("delivery").filter(isOwn);
  const waiting = own.filter(({ status }) => status === "WAITING");
  const failing = waiting.filter(({ attempt_count }) => attempt_count !== "0");
  const tried = books.of("delivery_attempt").filter(isOwn);
  const aDayAgo = Date.now() / 1000 - 86_400;
  const recent = tried.filter(({ attempted_at }) => attempted_at.from > aDayAgo);
  const failures = (attempts: Row[]) => attempts.filter(({ http_status }) => !http_status?.startsWith("2"));
  const last = failures(tried).at(-1);
  const { disabled_at, paused_until } = webhook;
  const health = disabled_at ? "disabled" : paused_until ? "paused" : failing.length > 0 ? "failing" : "healthy";
  return {
    ...pick(webhook, "tenant party url disabled_at paused_until rotated_at"),
    health,
    waiting: String(waiting.length),
    failing: String(failing.length),
    parked: String(own.length - waiting.length),
    oldest_waiting_at: waiting.length === 0 ? null : first(waiting.map(({ recorded_at }) => recorded_at!)),
    attempts_24h: String(recent.length),
    failures_24h: String(failures(recent).length),
    p95_ms_24h: String(
      percentile(
        recent.map(({ duration_ms }) => Number(duration_ms)),
        0.95,
      ),
    ),
    last_attempt_at: recent.at(-1)!.attempted_at!,
    last_failure_at: last?.attempted_at ?? null,
    expand: "false",
    event_types: null,
    last_error: last === undefined ? null : (last.error ?? `HTTP ${last.http_status}`),
  };
}

/** This share of the values is at most so high, interpolated between the two neighbours. */
export function percentile(values: number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  const place = share * (sorted.length - 1);
  const [low, high] = [sorted[Math.floor(place)]!, sorted[Math.ceil(place)]!];
  return low + (high - low) * (place - Math.floor(place));
}

/** `at`: when the metrics were read. It is noon where the first day ended: twelve hours ago. */
export function expectMetrics({ books, calendar }: Teller, at: Window): Record<string, number | Window> {
  const midnight = calendar.startedAt - ((calendar.startedAt + calendar.noon) % 86_400);
  const since = (times: Window[]): Window => {
    const { from, to } = first(times);
    return { from: at.from - to, to: at.to - from };
  };
  // The last two events were not sequenced.
  const unsequenced = books.of("event").slice(-2);
  const waiting = books.of("delivery").filter(({ status }) => status === "WAITING");
  const open = books.of("webhook").filter((one) => !one.disabled_at && !one.paused_until);
  const due = waiting.filter((row) => open.some(({ tenant, party }) => row.tenant === tenant && row.party === party));
  const pending = books.of("batch").filter(({ status }) => status === "PENDING");
  const unfinished = books.of("statement").filter(({ ready_at }) => !ready_at);
  const expired = books.of("redemption").filter((row) => row.status === "LAPSED" && row.stored_status === "LOCKED");
  const missing = pending.reduce((sum, batch) => sum + Number(batch.total_count) - Number(batch.minted_count), 0);
  const kinds = ["events", "locks", "expiry", "mint", "recall", "statement", "webhook"];
  const stuck = kinds.map((kind) => [`coupon_stuck_work{work="${kind}"}`, 0]);
  const outcomes = ["taken", "failed", "parked", "gone"].map((outcome) => [
    `coupon_webhook_attempts_total{outcome="${outcome}"}`,
    books.outcomes.filter((one) => one === outcome).length,
  ]);
  return {
    coupon_feed_waiting_events: unsequenced.length,
    coupon_feed_lag_seconds: since(unsequenced.map(({ recorded_at }) => recorded_at)),
    coupon_delivery_waiting_events: waiting.length,
    coupon_delivery_lag_seconds: since(due.map(({ next_attempt_at }) => next_attempt_at)),
    coupon_webhooks_disabled: books.of("webhook").filter(({ disabled_at }) => disabled_at).length,
    coupon_mint_pending_batches: pending.length,
    coupon_mint_pending_coupons: missing,
    // The recalls of the story are finished.
    coupon_recall_running_batches: 0,
    coupon_recall_pending_coupons: 0,
    coupon_recall_lag_seconds: 0,
    coupon_mint_lag_seconds: since(pending.map(({ created_at }) => created_at)),
    // Those of Variant A, and their twins.
    coupon_distributors_overdue: 4,
    coupon_day_lag_seconds: since([{ from: midnight, to: midnight }]),
    coupon_statements_waiting: unfinished.length,
    coupon_statement_lag_seconds: since(unfinished.map(({ closed_at }) => closed_at)),
    coupon_lock_lag_seconds: since(expired.map(({ lock_expires_at }) => lock_expires_at)),
    'coupon_database_up{program="work"}': 1,
    ...Object.fromEntries([...stuck, ...outcomes]),
  };
}
