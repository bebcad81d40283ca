// What a report and a metric also show: deliveries in every state, refusals that are recorded or not, and work that
// waits: events, deliveries, batches, days, statements and locks.
import type { Test } from "tap";
import { fingerprintKeys } from "../../src/crypto/key-fingerprint.ts";
import type { AttemptOutcome, WorkObserver } from "../../src/worker/metrics.ts";
import { hang, status, take, type Receiver } from "../support/receiver.ts";
import { createWorkerSteps } from "../support/worker-steps.ts";
import { openWorkerSession } from "../support/worker-session.ts";
import { pick, shift, uuidOf, type Row, type Window } from "./books.ts";
import { closeDay, passMidnight } from "./days.ts";
import { changed, orderBatch, patch, send, type Teller } from "./teller.ts";
import type { Owner } from "./tenants.ts";

const timeoutMs = 150;
const holder = "00000000-0000-4000-8000-000000000001";

/** Three refusals are recorded, one of them with a key, and so is its retry; the others leave nothing behind. */
export async function tellRefusals(teller: Teller, owner: Owner): Promise<void> {
  const { shop, merchant, store, coupons } = owner;
  const by = { teller, owner, key: shop };
  const { code } = coupons.standing!;
  const body = { coupon: code, merchant };
  for (const key of ["a key", "a key"]) await send(by, "redeem", body, key);
  await send(by, "reverse", { redemption: `red_${"0".repeat(26)}` });
  await send(by, "lock", { ...body, coupon: coupons.locked!.code, store });
  await send(by, "lock", { ...body, merchant: 7 });
  await send(by, "redeem", { ...body, coupon: code.slice(0, 15) + (code.endsWith("7") ? "8" : "7") });
}

// Sets when a delivery is due, in seconds from now.
async function isDue({ world }: Teller, delivery: Row, seconds: number): Promise<void> {
  const { event } = delivery;
  const rows = await world.owner.rows<{ due: string }>(
    `update core.delivery set next_attempt_at = clock_timestamp() + make_interval(secs => $2)
     where event_id = $1::text::uuid returning extract(epoch from next_attempt_at)::text as due`,
    [uuidOf(event), seconds],
  );
  if (rows.length !== 1) throw new Error(`${rows.length} deliveries of ${event}`);
  delivery.next_attempt_at = { from: Number(rows[0]!.due), to: Number(rows[0]!.due) };
}

// The status that the receiver answers, or the error instead.
type Result = [http_status: string | null, error?: string];

/** What the receiver answers to a delivery, and how the attempt is recorded. */
type Deliver = (delivery: Row, answer: Receiver["answer"], result: Result) => Promise<Window>;

function createDeliver(t: Test, teller: Teller, observer: WorkObserver, receiver: Receiver): Deliver {
  const { world, books } = teller;
  // Only the receiver that hangs is cut off early: on a busy machine another answer may take a while.
  const hasty = createWorkerSteps(t, world, { timeoutMs });
  return async (delivery, answer, [http_status, error = null]) => {
    await isDue(teller, delivery, 0);
    receiver.answer = answer;
    const { deliverDue, outcomes } = answer === hang ? hasty : world.steps;
    const { at } = await teller.during(deliverDue);
    books.outcomes.push(outcomes.at(-1)!);
    observer.attempted(outcomes.at(-1) as AttemptOutcome);
    const attempt = String(Number(delivery.attempt_count) + 1);
    const of = pick(delivery, "tenant party event");
    books.note("delivery_attempt", { ...of, attempt, http_status, error, attempted_at: at });
    // The schedule of Standard Webhooks begins with 5 s, varied by 20 %.
    const next_attempt_at = { from: at.from + 4, to: at.to + 6 };
    Object.assign(delivery, { attempt_count: attempt, last_error: error ?? `HTTP ${http_status}`, next_attempt_at });
    return at;
  };
}

/** Of four subscribers one takes its event, one answers 410, one fails, parks and times out, one asks for a pause. */
export async function tellDeliveries(
  t: Test,
  teller: Teller,
  observer: WorkObserver,
  receiver: Receiver,
): Promise<void> {
  const { books } = teller;
  const deliver = createDeliver(t, teller, observer, receiver);
  for (const delivery of books.of("delivery")) await isDue(teller, delivery, 80_000);
  const of = (tenant: string, party: string) => (row: Row) => row.tenant === tenant && row.party === party;
  const deliveries = (...owner: [string, string]) => books.of("delivery").filter(of(...owner));
  const webhook = (...owner: [string, string]) => books.of("webhook").find(of(...owner))!;

  const [taken] = deliveries("ten_a1", "pty_d2") as [Row];
  await deliver(taken, take, ["204"]);
  books.views.delivery = books.of("delivery").filter((row) => row !== taken);

  const [gone, ...others] = deliveries("ten_a1", "pty_d1") as [Row, ...Row[]];
  const goneAt = await deliver(gone, status(410), ["410"]);
  for (const one of [gone, ...others])
    Object.assign(one, { status: "PARKED", parked_at: goneAt, last_error: "HTTP 410" });
  Object.assign(webhook("ten_a1", "pty_d1"), { disabled_at: goneAt });

  const [failed, late, waiting] = deliveries("ten_b1", "pty_d1") as [Row, Row, Row];
  for (let count = 1; count < 10; count += 1) await deliver(failed, status(500), ["500"]);
  const parked_at = await deliver(failed, status(500), ["500"]);
  Object.assign(failed, { status: "PARKED", parked_at, next_attempt_at: parked_at });
  await deliver(late, hang, [null, `no complete response within ${timeoutMs / 1000} s`]);
  await isDue(teller, late, 300);

  const [paused] = deliveries("ten_b1", "pty_d2") as [Row];
  const pausedAt = await deliver(paused, status(503, { "retry-after": "3600" }), ["503"]);
  Object.assign(webhook("ten_b1", "pty_d2"), { paused_until: shift(pausedAt, 3_600) });
  await isDue(teller, paused, -900);
  await isDue(teller, waiting, -700);
  await setResults(teller);
  const rotate = "select admin.set_webhook_secret('ten_b1', 'pty_d1', '\\x01', '\\x02', 'leaked')";
  const act = () => teller.world.admin.rows(rotate);
  const what = {
    tenant: "ten_b1",
    action: "set_webhook_secret",
    target: "pty_d1",
    details: '{"webhook_secret": "replaced"}',
  };
  const rotated_at = await patch(teller, { ...what, reason: "leaked" }, act);
  Object.assign(webhook("ten_b1", "pty_d1"), { rotated_at });
}

// Durations and statuses that the test knows, and a first failure that is older than 24 hours.
async function setResults({ psql, books }: Teller): Promise<void> {
  const attempts = books.of("delivery_attempt");
  const old = attempts.findIndex(({ tenant }) => tenant === "ten_b1");
  attempts[old]!.attempted_at = shift(attempts[old]!.attempted_at, -25 * 3_600);
  for (const [index, status] of ["199", "200", "299", "300"].entries()) attempts[old + 1 + index]!.http_status = status;
  for (const [index, attempt] of attempts.entries()) {
    const { http_status } = attempt;
    attempt.duration_ms = String(7 * (index + 1));
    await psql.rows(
      `update core.delivery_attempt
       set duration_ms = $2, http_status = $3, attempted_at = attempted_at - make_interval(hours => $4)
       where attempt_id = $1`,
      [index + 1, 7 * (index + 1), http_status && Number(http_status), index === old ? 25 : 0],
    );
  }
}

/** Work that nobody does any more begins to wait: a batch and a statement. */
export async function leaveOldWork(teller: Teller): Promise<void> {
  const [, a2, b1] = teller.owners as [Owner, Owner, Owner];
  await orderBatch({ teller, owner: a2 }, a2.template, 5);
  await closeDay({ teller, owner: b1 }, { isFinished: false });
}

/** More of it, some time later; and what administrators take away. */
export async function leaveWork(t: Test, teller: Teller): Promise<void> {
  const { owners, world, books } = teller;
  const [a1, a2, b1, b2] = owners as [Owner, Owner, Owner, Owner];
  await closeDay({ teller, owner: b2 }, { isFinished: false });
  await passMidnight(teller, a1, -3 * 3_600);
  await passMidnight(teller, a2);
  await mintOne(t, teller, b1);
  const revoke = () => world.admin.rows("select admin.revoke_credential('ak_b1_q', 'lost')");
  const ofKey = {
    tenant: "ten_b1",
    action: "revoke_credential",
    target: "ak_b1_q",
    reason: "lost",
    details: changed("status", "in use", "revoked"),
  };
  const revoked = books.of("credential").find(({ access_key }) => access_key === "ak_b1_q")!;
  revoked.revoked_at = await patch(teller, ofKey, revoke);
  const note = () =>
    world.owner.rows(
      `select gate.note_uses(array[tenant_id], array[credential_id])
       from core.credential where access_key = 'ak_a1_m1'`,
    );
  const { at } = await teller.during(note);
  books.of("credential").find(({ access_key }) => access_key === "ak_a1_m1")!.last_used_at = {
    from: at.from - (at.from % 3_600),
    to: at.to - (at.to % 3_600),
  };
  const target = a1.batches.scoped!;
  const destroy = () => world.admin.rows("select admin.destroy_codes($1, 'printed')", [target]);
  const destroyed = books.of("batch").find(({ batch }) => batch === target)!;
  const ofCodes = {
    tenant: "ten_a1",
    action: "destroy_codes",
    target,
    reason: "printed",
    details: changed("codes", "kept", "destroyed"),
  };
  destroyed.codes_destroyed_at = await patch(teller, ofCodes, destroy);
}

// A worker has minted one of three coupons, and still has the lease.
async function mintOne(t: Test, teller: Teller, owner: Owner): Promise<void> {
  const { world, books, during } = teller;
  const batch = await orderBatch({ teller, owner }, owner.template, 3);
  const { number: worker } = await openWorkerSession(t, world.address);
  const find = "select batch_id as id from core.batch where external_id = $1";
  const [due] = await world.owner.rows<{ id: number }>(find, [batch.batch]);
  const claim = "select from jobs.lease_batch($1, $2, $3, $4, 10, $5::text::jsonb)";
  await world.worker.rows(claim, [owner.number, due!.id, worker, holder, fingerprintKeys(world.keys)]);
  const mint = "select from jobs.mint_chunk($1, $2, $3, 1, array[gen_random_uuid()])";
  const { at } = await during(() => world.worker.rows(mint, [owner.number, due!.id, holder]));
  Object.assign(batch, { minted_count: "1", mint_lease_until: shift(at, 30) });
  const read = "select rules.format_id('cpn', coupon_id) as coupon from core.coupon where batch_id = $1";
  const [minted] = await world.owner.rows<{ coupon: string }>(read, [due!.id]);
  const { coupon } = minted!;
  books.note("coupon", { ...owner.coupons.unreleased!.row, batch: batch.batch, coupon, number: "1", created_at: at });
}
