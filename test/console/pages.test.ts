// What the pages of the console say: their values against what callers did, and the checks that staff start from them.
import { hash } from "node:crypto";
import t, { type Test } from "tap";
import { moveToNoon, noonDate } from "../support/business-days.ts";
import type { Coupon } from "../support/caller.ts";
import { openConsole } from "../support/console.ts";
import { startReceiver, status, take } from "../support/receiver.ts";
import { newRequestId } from "../support/request-id.ts";
import { scenario } from "../support/scenario.ts";
import { tenants } from "../support/tenants.ts";

const receiver = await startReceiver(t);
const file = { tenants: structuredClone(tenants) as any[] };
file.tenants[0].parties[0].webhook = { url: receiver.url };
const world = await scenario(t, { file });
const { a, b, owner, steps } = world;
const { signIn } = await openConsole(t, world);

const one = async (scene: typeof a): Promise<Coupon> => (await scene.makeCoupons(1))[0]!;
type Row = Record<string, string>;
/** Only these columns, with blanks between them. */
const brief = (rows: Row[], columns: string) =>
  rows.map((row) =>
    columns
      .split(" ")
      .map((column) => row[column] || "-")
      .join(" "),
  );

t.test("The timeline of a coupon says what happened to it, who did it, where and for how much", async (t) => {
  const { read, post } = await signIn();
  const place = { store: "S1", terminal: "T1", order_id: "4711", order_amount: 50 };
  const seen = async ({ id }: Coupon) => {
    const rows = await read(`/coupons/${id}`, "Timeline");
    const times = rows.map(({ happened_at }) => happened_at!);
    t.strictSame(times, times.toSorted(), "in order of time");
    return brief(rows.slice(2), "what who discount_amount merchant store terminal order_id reason");
  };
  const path = (coupon: Coupon, action: string) => `/coupons/${coupon.id}?action=${action}`;

  const sold = await one(b);
  const [created, released] = await read(`/coupons/${sold.id}`, "Timeline");
  t.match(
    [created, released],
    [
      { what: "CREATED", who: "pty_maker" },
      { what: "RELEASED", who: "" },
    ],
  );
  await b.till.ok.lock(sold, place);
  await b.till.ok.confirm(sold);
  await world.as("ak_shop").ok.reverse(sold, { reason: "returned" });
  t.strictSame(await seen(sold), [
    "LOCKED pty_pos 5.00 mch_b S1 T1 4711 -",
    "CONFIRMED pty_pos 5.00 mch_b S1 T1 4711 -",
    "REVERSED pty_shop -5.00 mch_b S1 T1 4711 returned",
  ]);

  const left = await one(a);
  await a.till.ok.lock(left, { store: "=S9" });
  await a.till.ok.cancel(left);
  await a.till.ok.lock(left);
  t.match((await post(path(left, "release"), { tenant: "ten_a", reason: "till is broken" })).text, "Done.");
  await a.till.ok.lock(left);
  await a.endLock(left);
  await a.till.ok.void(left, { reason: "stolen" });
  t.strictSame(
    (await seen(left)).filter((line) => !line.startsWith("move_lock_end")),
    [
      "LOCKED ten_a 5.00 mch_a '=S9 - - -",
      "CANCELLED ten_a 5.00 mch_a '=S9 - - -",
      "LOCKED ten_a 5.00 mch_a - - - -",
      "release_lock coupon console anna - - - - - till is broken",
      "LOCKED ten_a 5.00 mch_a - - - -",
      "LAPSED - 5.00 mch_a - - - -",
      "VOIDED ten_a - mch_a - - - stolen",
    ],
  );

  const unused = await one(a);
  await a.expire(unused);
  await steps.expire();
  const banned = await one(b);
  await post(path(banned, "void"), { tenant: "ten_b", reason: "printed twice" });
  await b.till.ok.redeem(await one(b));
  const expired = brief(await read(`/coupons/${unused.id}`, "Timeline"), "what who reason").sort();
  t.strictSame(expired, [
    "CREATED pty_a -",
    "EXPIRED - -",
    "RELEASED - -",
    "extend_coupon coupon test to arrange a test",
  ]);
  t.strictSame((await seen(banned)).sort(), [
    "VOIDED - - - - - - printed twice",
    "void_coupon coupon console anna - - - - - printed twice",
  ]);
});

t.test(
  "The events of a coupon have their positions and deliveries, and its entries the lines of statements",
  async (t) => {
    const { read } = await signIn();
    await moveToNoon(world, "pty_a");
    const coupon = await one(a);
    await a.till.ok.redeem(coupon);
    const columns = "event_type party delivery attempts last_answer";
    const events = () => read(`/coupons/${coupon.id}`, "Events");
    t.strictSame(brief(await events(), `${columns} feed_position`), ["coupon.redeemed pty_a - 0 - -"], "not sequenced");
    await steps.sequence();
    t.strictSame(brief(await events(), columns), ["coupon.redeemed pty_a WAITING 0 -"]);
    await steps.deliverDue();
    receiver.answer = status(503);
    await a.till.ok.reverse(coupon);
    await steps.sequence();
    await steps.deliverDue();
    receiver.answer = take;
    t.strictSame(brief(await events(), columns), [
      "coupon.redeemed pty_a DELIVERED 1 HTTP 204",
      "coupon.reversed pty_a WAITING 1 HTTP 503",
    ]);
    await owner.rows("update core.delivery set parked_at = now()");
    t.strictSame((await events())[1]!["delivery"], "PARKED");
    await owner.rows("update core.delivery set parked_at = null");
    const positions = await owner.rows<{ event: string; feed_position: string }>(
      "select rules.format_id('evt', event_id) as event, position::text as feed_position from rules.feed_event",
    );
    for (const { event, feed_position } of await events())
      t.equal(feed_position, positions.find((known) => known.event === event)!.feed_position, event!);

    const [redeemed, reversed] = await events();
    const lines = await read(`/coupons/${coupon.id}`, "Lines of statements");
    t.strictSame(brief(lines, "business_date open_day distributor entry_type discount_amount"), [
      `- ${noonDate()} pty_a REDEMPTION 5.00`,
      `- ${noonDate()} pty_a REVERSAL -5.00`,
    ]);
    t.strictSame(
      lines.map(({ entry }) => entry!.slice(4)),
      [redeemed, reversed].map((row) => row!["event"]!.slice(4)),
    );
    const [webhook] = await read("/webhooks?tenant=ten_a", "Subscribers");
    t.match(webhook, { subscriber: "pty_a", health: "failing", waiting: "1", parked: "0", failures: "1" });
    const times = await owner.rows<{ ms: number }>("select duration_ms as ms from core.delivery_attempt order by 1");
    t.equal(Number(webhook!["attempts"]), times.length);
    t.equal(Number(webhook!["p99_ms"]), times.at(-1)!.ms);
    t.equal(Number(webhook!["p50_ms"]), times[Math.ceil(times.length / 2) - 1]!.ms);
  },
);

t.test("An order, a request and an idempotency-key lead to their coupon, or to a list of two tenants", async (t) => {
  const { post, read } = await signIn();
  const find = async (text: string) => (await post("/find", { find: text })).location;
  const [ofA, ofB, alone] = [await one(a), await one(b), await one(a)];
  const request_id = newRequestId();
  await a.till.ok.redeem(ofA, { order_id: "both tenants" });
  await b.till.ok.lock(ofB, { order_id: "both tenants" });
  await a.till.post(
    "/v1/coupons/redeem",
    { request_id, coupon: alone.code, merchant: "mch_a", order_id: "alone" },
    { idempotencyKey: "key-4711" },
  );
  for (const text of ["alone", request_id, "key-4711"]) t.equal(await find(text), `/coupons/${alone.id}`, text);
  t.equal(await find("both"), null, "only a whole ID is found");
  const [redemption] = await read(`/coupons/${alone.id}`, "Locks and");
  t.equal(await find(redemption!["redemption"]!), `/coupons/${alone.id}`);
  t.equal(await find("mch_b"), "/merchants/ten_b/mch_b");
  t.equal(await find("pty_dist"), "/parties/ten_b/pty_dist");
  t.equal(await find("tpl_b"), "/templates/ten_b/tpl_b");
  t.equal(await find("10 PERC"), "/templates?name=10+PERC");
  t.strictSame(brief(await read("/templates?name=10+PERC", "Templates"), "tenant template"), ["ten_a tpl_percent"]);
  const list = await find("both tenants");
  t.equal(list, "/search?id=both+tenants");
  const hits = await read(list!, "Locks and redemptions");
  t.strictSame(brief(hits, "tenant coupon status").sort(), [`ten_a ${ofA.id} REDEEMED`, `ten_b ${ofB.id} LOCKED`]);
  const forBatch = newRequestId();
  await a.maker.ok.createBatch("tpl_fixed", 1, { request_id: forBatch });
  t.equal(await find(forBatch), `/search?id=${forBatch}`, "a request without a coupon");
  const [request] = await read(`/search?id=${forBatch}`, "Requests with");
  t.match(request, { tenant: "ten_a", operation: "create_batch", http_status: "200" });
  const wrong = await post("/find", { find: `order ${alone.code}` });
  t.strictSame([wrong.status, wrong.location], [404, null], "a code goes into no address");
});

/** The facts of the overview. */
const readWork = async () => (await (await signIn()).read("/", "Waiting work"))[0]!;

t.test("The overview shows what waits, is minted, is open and leads", async (t) => {
  const { read } = await signIn();
  await world.mint();
  await steps.sequence();
  const before = (await read("/", "Redemptions and reversals per minute")).map(({ redemptions }) =>
    Number(redemptions),
  );
  t.equal(before.length, 120);
  t.match(await readWork(), { waiting_events: "0", pending_batches: "0", coupons_to_mint: "0" });
  const percent = await a.addTemplate({ merchants: ["mch_a2"] });
  const { coupons } = await world.makeBatch(a.maker, percent, 9);
  for (const coupon of coupons) await world.as("ak_a", "mch_a2").ok.redeem(coupon);
  await a.maker.ok.createBatch("tpl_fixed", 40);
  const { batch: pending } = await a.maker.ok.createBatch("tpl_fixed", 60);
  const work = await readWork();
  t.match(work, { waiting_events: "11", pending_batches: "2", coupons_to_mint: "100" });
  t.strictSame(
    brief((await read("/", "Batches being minted")).slice(1), "tenant batch minted_count total_count percent"),
    [`ten_a ${pending.external_id} 0 60 0.0`],
  );
  await world.mint();
  const sum = (rows: Row[]) => rows.reduce((total, { redemptions }) => total + Number(redemptions), 0);
  const minutes = await read("/", "Redemptions and reversals per minute");
  t.equal(sum(minutes), before.reduce((total, count) => total + count) + 9);
  const days = await read("/", "Redemptions and reversals per business day");
  const [ledger] = await owner.rows<{ redemptions: number }>(
    "select count(*)::int as redemptions from core.ledger_entry where entry_type = 'REDEMPTION'",
  );
  t.equal(sum(days), ledger!.redemptions, "all of them are of the last 30 days");
  t.match((await read("/", "Merchants with"))[0], {
    tenant: "ten_a",
    merchant: "mch_a2",
    redemptions: "9",
    redeemed: "45.00",
    reversed: "0.00",
    net: "45.00",
  });
  t.match((await read("/", "Templates with"))[0], { tenant: "ten_a", template: percent, redemptions: "9" });
  const open = await owner.rows<{ day: string }>(
    `select concat_ws(' ', t.external_id, p.external_id, b.open_on, p.time_zone) as day
     from core.ledger_book b join core.party p using (tenant_id, party_id) join core.tenant t using (tenant_id)`,
  );
  t.ok(open.length >= 2);
  t.strictSame(
    brief(await read("/", "Open business days"), "tenant distributor open_on time_zone").sort(),
    open.map(({ day }) => day).sort(),
  );
  const batch = (
    await owner.rows<{ batch: string }>("select batch from report.batch where template = $1", [percent])
  )[0]!;
  t.strictSame(brief(await read(`/batches/${batch.batch}`, "Coupons by status"), "status coupons percent"), [
    "ISSUED 0 0.0",
    "LOCKED 0 0.0",
    "REDEEMED 9 100.0",
    "EXPIRED 0 0.0",
    "VOIDED 0 0.0",
  ]);
  const template = `/templates/ten_a/${percent}`;
  const sums = "redemptions redeemed reversals reversed net";
  t.strictSame(brief(await read(template, "By merchant"), `merchant ${sums}`), ["mch_a2 9 45.00 0 0.00 45.00"]);
  t.strictSame(brief(await read(template, "By batch"), `batch ${sums}`), [`${batch.batch} 9 45.00 0 0.00 45.00`]);
});

t.test(
  "A refused call is at its coupon, its merchant, on the overview, and in the requests that this leads to",
  async (t) => {
    const { get, read, post } = await signIn();
    const [coupon, other] = [await one(a), await one(a)];
    const till = world.as("ak_a", "mch_a2");
    await till.ok.redeem(coupon);
    t.equal((await till.redeem(coupon, { store: "S7" })).json.code, "COUPON_REDEEMED");
    t.equal((await till.redeem(coupon, { store: "S8" })).json.code, "COUPON_REDEEMED");
    const columns = "operation code merchant store";
    const [s8, s7] = ["redeem COUPON_REDEEMED mch_a2 S8", "redeem COUPON_REDEEMED mch_a2 S7"];
    t.strictSame(brief(await read(`/coupons/${coupon.id}`, "Refused calls"), columns), [s8, s7]);
    t.strictSame(await read(`/coupons/${other.id}`, "Refused calls"), []);
    const atMerchant = brief(await read("/merchants/ten_a/mch_a2", "Refusals"), "operation code store refusals");
    t.strictSame(atMerchant.sort(), ["redeem COUPON_REDEEMED S7 1", "redeem COUPON_REDEEMED S8 1"]);
    const link = "/requests?tenant=ten_a&merchant=mch_a2&code=COUPON_REDEEMED";
    t.match((await get("/?unshared")).text, `<a href="${link.replaceAll("&", "&amp;")}">`);
    t.strictSame(brief(await read(link, "Refused"), columns).slice(0, 2), [s8, s7]);
    const [newest] = await read(link, "Refused");
    const until = await read(`${link}&until=${encodeURIComponent(newest!["recorded_at"]!)}`, "Refused");
    t.equal(until.length, (await read(link, "Refused")).length);
    t.equal((await read(`${link}&since=2999-01-01T00:00Z`, "Refused")).length, 0);

    const usable = async () => (await read(`/coupons/${other.id}`, "Now"))[0]!["usable"];
    const batch = (await read(`/coupons/${other.id}`, "Now"))[0]!["batch"]!;
    t.equal(await usable(), "yes");
    await post(`/batches/${batch}?action=suspend`, { reason: "codes leaked" });
    t.equal(await usable(), "no: its batch is suspended");
    const [hold] = await read("/batches", "Batches");
    t.strictSame([hold!["batch"], hold!["hold"]], [batch, "SUSPENDED"]);
    t.strictSame(brief(await read(`/batches/${batch}`, "Suspended"), "action who reason"), [
      "suspend_batch coupon console anna codes leaked",
      "export_codes coupon test -",
    ]);
    const missing = await get("/nowhere");
    t.equal(missing.status, 404);
    t.match(missing.text, 'role="search"', "whoever is signed in goes on from there");
  },
);

t.test("The files of a statement are those that were closed, and a changed line is found", async (t) => {
  const { get, post, read } = await signIn();
  await moveToNoon(world, "pty_a", 1);
  await steps.close();
  const [recorded] = await owner.rows<Record<string, string>>(
    `select business_date::text, detail_sha256, detail_bytes::text, summary_sha256, summary_bytes::text
     from report.statement where tenant = 'ten_a' and entry_count > 0`,
  );
  const path = `/statements/ten_a/pty_a/${recorded!["business_date"]}`;
  t.equal((await read("/statements?tenant=ten_a", "Closed"))[0]!["business_date"], recorded!["business_date"]);
  for (const kind of ["detail", "summary"]) {
    const { status: code, text } = await get(`${path}?file=${kind}.csv`);
    const found = [code, String(Buffer.byteLength(text)), hash("sha256", text)];
    t.strictSame(found, [200, recorded![`${kind}_bytes`], recorded![`${kind}_sha256`]], kind);
  }
  t.equal((await get("/statements/ten_b/pty_dist/2020-01-01?file=detail.csv")).status, 404);
  const verify = () => post(`${path}?action=verify`, {});
  const whole = await verify();
  t.equal(whole.status, 200);
  t.match(whole.text, "detail.csv is as it was closed. summary.csv is as it was closed.");
  const psql = await world.openPsql({ triggers: false });
  const change = (by: number) => psql.run(`update core.statement_line set redemption_minor = redemption_minor + ${by}`);
  await change(1);
  const { status: code, text } = await verify();
  t.equal(code, 409);
  t.match(text, /detail\.csv is as it was closed\. summary\.csv differs: sha256 is [0-9a-f]{64}, was [0-9a-f]{64}\./);
  t.match(text, /Totals: EUR ledger [\d.]+ summary [\d.]+ difference 0\.01\./);
  await t.rejects(get(`${path}?file=summary.csv`), "its download is cut short");
  await change(-1);
  t.equal((await verify()).status, 200);

  const balances = await read("/parties/ten_a/pty_a", "Balance as distributor at the end");
  const [ledger] = await owner.rows<{ balance: string }>(
    "select sum(discount_amount)::text as balance from report.ledger where distributor = 'pty_a'",
  );
  t.equal(balances.at(-1)!["business_date"], noonDate(1), "the open day");
  const at = (date: string) => balances.find(({ business_date }) => business_date === date)?.["balance"];
  t.equal(at(noonDate(-1)), "0.00", "before the first day");
  t.match(balances.at(-1), { currency: "EUR", balance: ledger!.balance }, "now");
});

t.test("Staff sends a test event, which the audit has", async (t) => {
  const { post } = await signIn();
  const path = "/webhooks/ten_a/pty_a?action=test";
  await steps.deliverDue();
  const before = receiver.received.length;
  t.match((await post(path, { tenant: "ten_a", event_type: "coupon.redeemed" })).text, "Done.");
  const wrong = await post(path, { tenant: "ten_a", event_type: "coupon.eaten" });
  t.ok(wrong.status >= 400);
  const other = await post("/webhooks/ten_b/pty_dist?action=test", { tenant: "ten_b", event_type: "coupon.redeemed" });
  t.equal(other.status, 404, "it has no webhook");
  await steps.deliverDue();
  t.match(
    receiver.received.slice(before).map(({ body }) => JSON.parse(body).event_type),
    ["coupon.redeemed"],
  );
  const audited = await owner.rows("select client, target from core.audit where action = 'test_webhook'");
  t.strictSame([...audited], [{ client: "coupon console anna", target: "pty_a" }]);
});

async function breakInvariant(t: Test): Promise<{ invariant: string; mend(): Promise<unknown> }> {
  const psql = await world.openPsql({ triggers: false });
  const change = (by: number) => psql.run(`update core.statement set entry_count = entry_count + ${by}`);
  await change(1);
  t.teardown(psql.end);
  return { invariant: "statement counts its postings", mend: () => change(-1) };
}

t.test("The page of invariants shows the last checks, and checks one or all", async (t) => {
  const { get, post, read } = await signIn();
  const find = async (name: string) => (await read("/invariants", "What")).find(({ invariant }) => invariant === name)!;
  const { invariant, mend } = await breakInvariant(t);
  await owner.rows("delete from core.invariant_check");
  t.match(await find(invariant), { broken_rows: "", checked_at: "", description: /^Statements whose entry_count/ });
  const path = `/invariants/${encodeURIComponent(invariant)}`;
  t.match((await post(`${path}?action=check`, {})).text, "Done.");
  const broken = await find(invariant);
  t.match(broken, { broken_rows: /^[1-9]/, example: /^ten_\w+ pty_\w+ / });
  t.equal((await readWork())["broken_invariants"], "1");
  const wrong = await read("/", "What is wrong");
  t.ok(brief(wrong, "what invariant").includes(`invariant is broken ${invariant}`));
  const all = await post("/invariants?action=check", {});
  t.equal(all.status, 409);
  t.match(all.text, /(\d+) of \1 checked, 1 broken\./);
  await mend();
  const known = await owner.rows("select from rules.known_invariant");
  t.match((await post("/invariants?action=check", {})).text, `${known.length} of ${known.length} checked, 0 broken.`);
  t.match(await readWork(), { broken_invariants: "0", unchecked_invariants: "0" });
  t.ok(
    (await read("/invariants", "What")).every(({ description }) => description !== ""),
    "each is described",
  );

  const psql = await world.openPsql();
  await psql.run(`begin; select from core.invariant_check where invariant = '${invariant}' for update`);
  const late = await post(`${path}?action=check`, {});
  t.strictSame([late.status, /This took too long/.test(late.text)], [409, true]);
  await psql.run("rollback");
  t.equal((await post("/invariants/there%20is%20none?action=check", {})).status, 404);
  t.equal((await get(path)).status, 200);
});
