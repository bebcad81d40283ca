// Four subscribers: one takes its event, one answers 410, one fails until its delivery is parked and then times out,
// and one asks for a pause. Each step delivers one event, so the order of attempts is known.
import type { Test } from "tap";
import { createAddressRule } from "../../src/worker/address-rule.ts";
import { createLog } from "../../src/common/log.ts";
import type { WorkObserver } from "../../src/worker/metrics.ts";
import { createDeliverer } from "../../src/worker/tasks/deliver.ts";
import { createSender } from "../../src/worker/webhook-sender.ts";
import { hang, startReceiver, status, take, type Receiver } from "../support/receiver.ts";
import { waitUntil } from "../support/wait-until.ts";
import { openWorkerSession } from "../support/worker-session.ts";
import { newWebhookSecret } from "../../src/crypto/webhook-signature.ts";
import { hashSecret, seal, webhookPurpose } from "../../src/crypto/seal.ts";
import { shift, type Attempt, type Delivery, type Webhook, type Window } from "./books.ts";
import { sequence, type Calendar } from "./days.ts";
import { voidCoupon, type Left } from "./lives.ts";
import { audit, grant, type Teller } from "./teller.ts";

const timeoutMs = 150;
const pauseSeconds = 3_600;
const none = { disabledAt: null, pausedUntil: null, rotatedAt: null };

export type Lefts = { A: { fixed: Left; second: Left }; B: { fixed: Left; second: Left } };
type Parts = { teller: Teller; calendar: Calendar; receiver: Receiver; drain: () => Promise<Window> };

/** Declares the webhooks. Events from now on are delivered. */
async function subscribe({ teller, receiver }: Parts): Promise<Map<string, Webhook>> {
  const { service, books, during } = teller;
  const webhooks = new Map<string, Webhook>();
  for (const tenant of books.tenants) {
    const { id, name, variant, amount_unit } = tenant.document;
    const parties = ["pty_one", "pty_two"].map((party) => {
      const url = `${receiver.url}/${tenant.id}/${party}`;
      const webhook: Webhook = { tenant, party, url, ...none };
      books.webhooks.push(webhook);
      webhooks.set(`${variant} ${party}`, webhook);
      const declared = tenant.document.parties.find((one: any) => one.id === party).name;
      return { id: party, name: declared, webhook: { url, secret: newWebhookSecret() } };
    });
    const { at } = await during(() => service.apply({ tenants: [{ id, name, variant, amount_unit, parties }] }));
    audit(teller, tenant, "apply", tenant.id, at, { details: '{"changed": 2}' });
  }
  return webhooks;
}

async function rotate({ teller }: Parts, webhook: Webhook): Promise<void> {
  const { service, during } = teller;
  const { tenant, party } = webhook;
  const secret = newWebhookSecret();
  const sealed = seal(service.keys, webhookPurpose(tenant.id, party), secret);
  const patch = "select admin.set_webhook_secret($1, $2, $3, decode($4, 'hex'), 'leaked')";
  const hash = hashSecret(service.keys, secret);
  const { at } = await during(() => service.admin.rows(patch, [tenant.id, party, sealed, hash]));
  webhook.rotatedAt = at;
  audit(teller, tenant, "set_webhook_secret", party, at, { reason: "leaked" });
}

// Only the receiver that hangs is cut off early: on a busy machine another answer may take a while.
async function startDelivering(
  t: Test,
  { service, days, during }: Teller,
  observer: WorkObserver,
  receiver: Receiver,
): Promise<() => Promise<Window>> {
  const session = await openWorkerSession(t, service.address);
  const mayConnect = createAddressRule(["127.0.0.0/8"]);
  const [patient, hasty] = [createSender({ mayConnect }), createSender({ mayConnect, timeoutMs })];
  const deliverer = createDeliverer({
    database: days.worker,
    keys: service.keys,
    send: (...webhook) => (receiver.answer === hang ? hasty : patient)(...webhook),
    getSession: () => session,
    stopping: new AbortController().signal,
    log: createLog("silent"),
    onAttempt(outcome) {
      attempts += 1;
      observer.attempted(outcome);
    },
  });
  let attempts = 0;
  return async () => {
    const before = attempts;
    // On a busy machine the time slice of a subscriber may end before its request.
    const deliver = async () => {
      for (const due of await deliverer.listDue()) await deliverer.deliver(due);
      return attempts > before;
    };
    return (await during(() => waitUntil("the attempt", deliver))).at;
  };
}

// The delivery of the newest event, which was just sequenced.
function newest({ teller }: Parts, webhook: Webhook, createdAt: Window): Delivery {
  const event = teller.books.events.at(-1)!;
  return { webhook, event, attempts: 0, nextAttemptAt: createdAt, parkedAt: null, lastError: null };
}

type Result = Pick<Attempt, "status" | "error" | "outcome">;

async function attempt(parts: Parts, delivery: Delivery, answer: Receiver["answer"], result: Result): Promise<Window> {
  parts.receiver.answer = answer;
  const at = await parts.drain();
  const { webhook, event } = delivery;
  delivery.attempts += 1;
  const { attempts } = parts.teller.books;
  attempts.push({ webhook, event, attempt: delivery.attempts, durationMs: 0, at, ...result });
  delivery.lastError = result.error ?? `HTTP ${result.status}`;
  // The schedule of Standard Webhooks begins with 5 s, varied by 20 %.
  delivery.nextAttemptAt = { from: at.from + 4, to: at.to + 6 };
  return at;
}

async function isDue({ teller }: Parts, delivery: Delivery, secondsAgo: number): Promise<void> {
  const rows = await teller.service.owner.rows<{ due: string }>(
    `update core.delivery d set next_attempt_at = clock_timestamp() - make_interval(secs => $3)
     from core.party p
     where p.tenant_id = d.tenant_id and p.party_id = d.party_id and p.tenant_id = $1 and p.external_id = $2
       and d.parked_at is null and d.attempt_count = $4
     returning extract(epoch from next_attempt_at)::text as due`,
    [delivery.webhook.tenant.number, delivery.webhook.party, secondsAgo, delivery.attempts],
  );
  if (rows.length !== 1) throw new Error(`${rows.length} deliveries were made due instead of one`);
  delivery.nextAttemptAt = { from: Number(rows[0]!.due), to: Number(rows[0]!.due) };
}

export async function tellWebhooks(
  t: Test,
  teller: Teller,
  calendar: Calendar,
  lefts: Lefts,
  observer: WorkObserver,
): Promise<void> {
  const receiver = await startReceiver(t, take);
  const parts = { teller, calendar, receiver, drain: await startDelivering(t, teller, observer, receiver) };
  const webhooks = await subscribe(parts);
  await rotate(parts, webhooks.get("A pty_one")!);
  const next = async (webhook: Webhook, act: () => Promise<unknown>) => {
    await act();
    const { at } = await teller.during(() => sequence(teller, calendar));
    return newest(parts, webhook, at);
  };
  const { A, B } = lefts;

  const taken = await next(webhooks.get("A pty_one")!, () => voidCoupon(teller, A.fixed.unused.pop()!, null));
  await attempt(parts, taken, take, { status: 204, error: null, outcome: "taken" });

  const redeem = (left: Left) => grant(teller, "redeem", left.unused.pop()!, { orderMinor: 240 });
  const gone = await next(webhooks.get("A pty_two")!, () => redeem(A.second));
  const goneAt = await attempt(parts, gone, status(410), { status: 410, error: null, outcome: "gone" });
  Object.assign(gone, { parkedAt: goneAt });
  Object.assign(gone.webhook, { disabledAt: goneAt });

  const failed = await next(webhooks.get("B pty_one")!, () => voidCoupon(teller, B.fixed.unused.pop()!, "old"));
  for (let count = 1; count <= 10; count += 1) {
    if (count > 1) await isDue(parts, failed, 0);
    const outcome = count === 10 ? "parked" : "failed";
    const at = await attempt(parts, failed, status(500), { status: 500, error: null, outcome });
    if (count === 10) Object.assign(failed, { parkedAt: at, nextAttemptAt: at });
  }
  const late = await next(webhooks.get("B pty_one")!, () => voidCoupon(teller, B.fixed.unused.pop()!, null));
  const error = `no complete response within ${timeoutMs / 1000} s`;
  await attempt(parts, late, hang, { status: null, error, outcome: "failed" });
  await isDue(parts, late, -300);

  const paused = await next(webhooks.get("B pty_two")!, () => redeem(B.second));
  const refusal = status(503, { "retry-after": String(pauseSeconds) });
  const pausedAt = await attempt(parts, paused, refusal, { status: 503, error: null, outcome: "failed" });
  paused.webhook.pausedUntil = shift(pausedAt, pauseSeconds);
  await isDue(parts, paused, 900);

  const waiting = await next(webhooks.get("B pty_one")!, () => voidCoupon(teller, B.fixed.unused.pop()!, null));
  await isDue(parts, waiting, 700);
  teller.books.deliveries.push(gone, failed, late, paused, waiting);
  await setDurations(teller);
}

// Durations that the test knows, and a first failure that is older than 24 hours.
async function setDurations({ psql, books }: Teller): Promise<void> {
  await psql.rows("update core.delivery_attempt set duration_ms = 7 * attempt_id");
  for (const [index, attempt] of books.attempts.entries()) attempt.durationMs = 7 * (index + 1);
  const old = books.attempts.find(({ webhook }) => webhook.tenant.variant === "B")!;
  const number = books.attempts.indexOf(old) + 1;
  await psql.rows(
    "update core.delivery_attempt set attempted_at = attempted_at - interval '25 hours' where attempt_id = $1",
    [number],
  );
  old.at = shift(old.at, -25 * 3_600);
}
