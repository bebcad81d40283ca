// What each read must answer to each owner: what the owner's own rows in the books say, each field by value.
import { Decrypter } from "age-encryption";
import { buffer } from "node:stream/consumers";
import type { Test } from "tap";
import { openDownload } from "../support/client.ts";
import { readCsv } from "../support/csv.ts";
import { pullEvents } from "../support/pull-events.ts";
import { compare, minorOf, pick, type Books, type Row, type Window } from "./books.ts";
import type { Teller } from "./teller.ts";
import { secretOf } from "../support/tenants.ts";
import { identities, partyOf, type Owner } from "./tenants.ts";

/** Whether a row of a party is the owner's to see: in Variant A its tenant's, in Variant B its own. */
const isOf =
  ({ tenant, variant }: Owner, party: string, column = "party") =>
  (row: Row) =>
    row.tenant === tenant && (variant === "A" || row[column] === party);

const readyStatements = (books: Books, owner: Owner): Row[] =>
  books.of("statement").filter((row) => row.ready_at && isOf(owner, owner.distributorParty, "distributor")(row));

const isSame = (one: Row, other: Row, names: string): boolean =>
  names.split(" ").every((name) => one[name] === other[name]);

// The last two events of the story are not sequenced.
const sequencedEvents = (books: Books): Row[] => books.of("event").slice(0, -2);

/** For each read: compares all answers to an owner. */
export const reads: Record<string, (t: Test, teller: Teller, owner: Owner) => Promise<void>> = {
  async query(t, { world, books, owners }, owner) {
    const { tenant, merchant, shop, coupons } = owner;
    const own = books.of("coupon").filter((row) => row.tenant === tenant);
    // A merchant sells the coupons of both sides, unless the template says otherwise.
    const other = owners.find((one) => one.tenant === tenant && one.side !== owner.side)!;
    const { scoped, ...others } = other.coupons;
    const query = (coupon: string) => world.as(shop).post("/v1/coupons/query", { coupon, merchant });
    for (const { code, id } of [...Object.values(coupons), ...Object.values(others)]) {
      const { json } = await query(code);
      const row = own.find(({ coupon }) => coupon === id)!;
      compare(t, json, { ok: true, coupon: showCoupon(books.of("redemption"), owner, row) }, `query of ${id}`);
    }
    t.equal((await query(scoped!.code)).json.code, "MERCHANT_NOT_IN_SCOPE");
  },

  async get_batch(t, { world, books }, owner) {
    for (const row of books.of("batch").filter(isOf(owner, owner.makerParty, "maker"))) {
      const { json } = await world.as(owner.maker).get(`/v1/batches/${row.batch}`);
      compare(t, json, { ok: true, batch: showBatch(row) }, `batch of ${row.template}`);
    }
  },

  async list_batches(t, { world, books }, owner) {
    const isMade = isOf(owner, owner.makerParty, "maker");
    const isReceived = isOf(owner, owner.distributorParty, "distributor");
    const newestFirst = books.of("batch").toReversed();
    for (const [by, isListed] of [
      [owner.maker, isMade],
      [owner.distributor, (row: Row) => isReceived(row) && (owner.variant === "A" || row.status === "ALLOCATED")],
    ] as const) {
      const { json } = await world.as(by).get("/v1/batches?limit=1000");
      const batches = newestFirst.filter(isListed).map(showBatch);
      compare(t, json, { ok: true, batches, next_cursor: null }, `batches of ${by}`);
    }
  },

  async get_redemption(t, { world, books }, owner) {
    for (const row of redemptionsOf(books, owner)) {
      const { json } = await world.as(owner.shop).get(`/v1/redemptions/${row.redemption}`);
      compare(t, json, { ok: true, redemption: showRedemption(owner, row) }, `redemption ${row.redemption}`);
    }
  },

  async list_redemptions(t, { world, books }, owner) {
    const by = world.as(owner.shop);
    const rows = redemptionsOf(books, owner);
    const list = `/v1/redemptions?merchant=${owner.merchant}`;
    for (const order of new Set(rows.map(({ order_id }) => order_id).filter(Boolean))) {
      const { json } = await by.get(`${list}&order_id=${encodeURIComponent(order)}`);
      const own = rows.filter(({ order_id }) => order_id === order).toReversed();
      const redemptions = own.map((row) => showRedemption(owner, row));
      compare(t, json, { ok: true, redemptions, next_cursor: null }, `order ${order}`);
    }
    const changes = sequencedEvents(books).filter(
      ({ tenant, redemption }) => tenant === owner.tenant && rows.some((row) => row.redemption === redemption),
    );
    const { json } = await by.get(`${list}&limit=1000`);
    const expected = changes.map((event) => ({
      ...showRedemption(
        owner,
        rows.find(({ redemption }) => redemption === event.redemption)!,
      ),
      change: event.event_type === "coupon.redeemed" ? "REDEMPTION" : "REVERSAL",
      changed_at: event.recorded_at,
    }));
    compare(t, json.redemptions, expected, `changes of ${owner.merchant}`);
  },

  async export_codes(t, { world, books }, owner) {
    const { tenant, variant, makerParty, distributorParty } = owner;
    for (const row of books.of("batch").filter((one) => one.tenant === tenant))
      for (const [party, accessKey] of [
        [makerParty, owner.maker],
        [distributorParty, owner.distributor],
      ] as const) {
        const path = `/v1/batches/${row.batch}/codes${variant === "A" ? `?party=${party}` : ""}`;
        const response = await openDownload({ url: world.url, path, accessKey, secret: secretOf(accessKey) });
        const answer = await buffer(response);
        const what = `codes of ${row.template} for ${tenant} ${party}, ${row.status}`;
        const refusal = refuseExport(row, party);
        if (refusal !== null) {
          t.equal(JSON.parse(answer.toString()).code, refusal, what);
          continue;
        }
        const { public_key } = books.of("party").find((one) => one.tenant === tenant && one.party === party)!;
        const decrypter = new Decrypter();
        decrypter.addIdentity(identities[public_key]!);
        const codes = readCsv((await decrypter.decrypt(answer, "text")).replaceAll("\n", "\r\n"));
        const own = books.of("coupon").filter((one) => one.tenant === tenant && one.batch === row.batch);
        compare(t, codes.map(({ coupon_id }) => coupon_id).sort(), own.map(({ coupon }) => coupon).sort(), what);
        for (const { id, code } of Object.values(owner.coupons)) {
          const found = codes.find(({ coupon_id }) => coupon_id === id);
          if (found !== undefined) t.equal(found.code, code, what);
        }
      }
  },

  async pull_events(t, { world, books, owners }, owner) {
    const { distributor, distributorParty } = owner;
    const own = sequencedEvents(books).filter(isOf(owner, distributorParty));
    const names = "event_id=event event_type coupon_id=coupon redemption_id=redemption occurred_at recorded_at";
    const expected = own.filter(({ coupon }) => coupon).map((row) => pick(row, names));
    const by = world.as(distributor);
    const { events } = await pullEvents(by, 7);
    compare(t, events, expected, `feed of ${distributor}`);
    // The cursor at the end of another feed is valid here only if this feed is as long.
    for (const other of owners.filter((one) => one.variant === owner.variant)) {
      const { events: others, end } = await pullEvents(world.as(other.distributor), 100);
      const { status } = await by.get(`/v1/events?cursor=${end}`);
      t.equal(status, others.length > events.length ? 400 : 200, `${other.tenant} ${other.distributor}`);
    }
    if (owner.variant === "B")
      t.strictSame((await pullEvents(world.as(owner.shop), 7)).events, [], "others have no feed");
  },

  async list_reconciliations(t, { world, books }, owner) {
    const by = world.as(owner.distributor);
    const { json } = await by.get("/v1/reconciliations");
    const own = readyStatements(books, owner).toSorted((one, two) => (one.distributor < two.distributor ? -1 : 1));
    const expected = own.map((row) => showStatement(owner, row));
    compare(t, json.reconciliations, expected, `statements of ${owner.distributor}`);
  },

  async get_reconciliation(t, { world, books }, owner) {
    const by = world.as(owner.distributor);
    for (const statement of readyStatements(books, owner)) {
      const { distributor, business_date } = statement;
      const path = (kind: string) => `/v1/reconciliations/${business_date}/${kind}`;
      for (const [kind, view, names] of files) {
        const { text } = await by.get(`${path(kind)}?distributor=${distributor}`);
        const lines = books.of(view).filter((row) => isSame(row, statement, "tenant distributor business_date"));
        compareLines(t, `${kind} of ${distributor}`, text, lines, names);
        const unnamed = await by.get(path(kind));
        if (owner.variant === "A") t.equal(unnamed.json.code, "AMBIGUOUS_DISTRIBUTOR");
        else t.equal(unnamed.text, text, "its own file, without a name");
      }
      t.equal((await by.get(path("other"))).status, 404, "the first of two refusals");
    }
  },

  async get_request(t, { world, books }, { tenant, shop }) {
    const caller = partyOf(shop);
    for (const row of books.of("request").filter((one) => one.tenant === tenant && one.caller === caller)) {
      const { json } = await world.as(shop).get(`/v1/requests/${encodeURIComponent(row.request_id)}`);
      const shown = pick(row, "request_id operation recorded_at");
      const request = { ...shown, http_status: Number(row.http_status), response: JSON.parse(row.response) };
      compare(t, json, { ok: true, request }, `request ${row.request_id}`);
    }
  },

  async get_webhook(t, { world, books }, { tenant, variant, distributor, distributorParty }) {
    const isOwn = (row: Row) => row.tenant === tenant && row.party === distributorParty;
    const query = variant === "A" ? `?party=${distributorParty}` : "";
    const { attempts, ...rest } = (await world.as(distributor).get(`/v1/webhook${query}`)).json.webhook;
    const health = books.of("webhook_health").find(isOwn)!;
    const counts = { waiting: Number(health.waiting), parked: Number(health.parked) };
    const { full: url } = books.of("webhook").find(isOwn)!;
    t.strictSame(rest, { ...pick(health, "party_id=party status=health"), url, ...counts }, distributor);
    const tried = books.of("delivery_attempt").filter(isOwn).toReversed();
    const expected = tried.map(({ event, attempted_at, http_status, error }, index) => {
      const isNewest = index === tried.findIndex((one) => one.event === event);
      return {
        event_id: event,
        event_type: books.of("event").find((one) => one.tenant === tenant && one.event === event)!.event_type,
        attempted_at,
        http_status: http_status && Number(http_status),
        reason: http_status?.startsWith("2") ? null : (error ?? `HTTP ${http_status}`),
        next_attempt_at: isNewest ? nextAttempt(books.of("delivery").filter(isOwn), event, health) : null,
      };
    });
    compare(t, attempts, expected, `attempts of ${distributor}`);
  },
};

function refuseExport(row: Row, party: string): string | null {
  const { status, maker, distributor, recalled_at, codes_destroyed_at } = row;
  if (party !== maker && party !== distributor) return "NOT_FOUND";
  if (recalled_at) return "BATCH_SUSPENDED";
  if (status === "PENDING") return "BATCH_NOT_COMPLETED";
  if (status === "COMPLETED" && party !== maker) return "COUPON_NOT_RELEASED";
  return codes_destroyed_at ? "CODES_DESTROYED" : null;
}

// Variant A has minor units.
const amountOf = (variant: string, text: string): number => (variant === "A" ? minorOf(text) : Number(text));

function showCoupon(redemptions: Row[], { variant, merchant }: Owner, row: Row) {
  const shown = pick(row, "coupon_id=coupon status template_id=template batch_id=batch created_at valid_from valid_to");
  const isShown = /LOCKED|REDEEMED|REVERSED/;
  const last = redemptions.findLast((one) => isSame(one, row, "tenant coupon") && isShown.test(one.status));
  // The story's merchants of a tenant have different parties.
  if (last === undefined || (variant === "B" && last.merchant !== merchant)) return shown;
  const names = "redemption merchant_id=merchant status started_at currency";
  const redemption = { ...pick(last, names), discount_amount: amountOf(variant, last.discount_amount) };
  return { ...shown, redemption };
}

const redemptionsOf = (books: Books, { tenant, merchant }: Owner): Row[] =>
  books.of("redemption").filter((row) => row.tenant === tenant && row.merchant === merchant);

function showRedemption({ variant }: Owner, row: Row) {
  const names = `redemption status coupon_id=coupon batch_id=batch template_id=template merchant_id=merchant store
    terminal order_id currency lock_request_id started_at lock_expires_at redeemed_at reversal reason=reversal_reason`;
  return {
    ...pick(row, names),
    order_amount: row.order_amount && amountOf(variant, row.order_amount),
    discount_amount: amountOf(variant, row.discount_amount),
    reversed_at: row.reversal ? row.ended_at : null,
  };
}

function showBatch(row: Row) {
  const counts = { total_count: Number(row.total_count), minted_count: Number(row.minted_count) };
  const names = "maker_party_id=maker distributor_party_id=distributor template_id=template";
  const stopped = pick(row, "requested_at=recalled_at finished_at=recall_finished_at");
  const recall = { ...stopped, voided_count: Number(row.recall_voided_count) };
  return {
    ...pick(row, `external_id=batch status created_at suspended_at ${names}`),
    ...counts,
    ...(row.recalled_at && { recall }),
  };
}

/** An entry of the list. In Variant A, where several distributors share a date, links name one. */
function showStatement({ variant }: Owner, row: Row) {
  const named = variant === "A" && row.is_one_of_several === "true" ? `?distributor=${row.distributor}` : "";
  const describe = (kind: string, rows: string) => ({
    kind,
    href: `/v1/reconciliations/${row.business_date}/${kind}${named}`,
    rows: Number(rows),
    bytes: Number(row[`${kind}_bytes`]),
    sha256: row[`${kind}_sha256`],
  });
  const files = [describe("detail", row.entry_count), describe("summary", row.summary_rows)];
  return { ...pick(row, "business_date distributor_party_id=distributor closed_at"), files };
}

// A pause that the subscriber asked for delays it.
function nextAttempt(deliveries: Row[], event: string, { paused_until }: Row): Window | null {
  const waiting = deliveries.find((one) => one.event === event && one.status === "WAITING");
  if (waiting === undefined) return null;
  return paused_until?.from > waiting.next_attempt_at.from ? paused_until : waiting.next_attempt_at;
}

// The columns of files, as columns of the views.
const detail = `business_date entry_id=entry entry_type redemption_id=redemption reversal_id=reversal coupon_id=coupon
  batch_id=batch template_id=template merchant_id=merchant store terminal order_id order_amount discount_amount currency
  occurred_at recorded_at distributor_id=distributor`;
const summary = `business_date merchant_id=merchant template_id=template currency redemption_count redemption_amount
  reversal_count reversal_amount net_amount distributor_id=distributor`;
const files = [
  ["detail", "posting", detail],
  ["summary", "statement_line", summary],
] as const;

// Their amounts are major units, whatever unit the tenant uses.
function compareLines(t: Test, name: string, text: string, rows: Row[], names: string): void {
  const inOrder = rows.toSorted((one, other) => Number(one.number) - Number(other.number));
  const expected = inOrder.map((row) => {
    const cells = Object.entries(pick(row, names)).map(([header, cell]) => [header, cell ?? ""]);
    return Object.fromEntries(cells);
  });
  compare(t, readCsv(text), expected, name);
}
