// webhooks: deliveries in a second to ten receivers on this machine, from the first to the last, while all events wait.
// The receivers verify each signature with the reference library of Standard Webhooks.
import { newWebhookSecret } from "../../../src/crypto/webhook-signature.ts";
import { startReceiver, take, verify, type Answer } from "../../support/receiver.ts";
import { waitUntil } from "../../support/wait-until.ts";
import { withinMs, type Run } from "./environment.ts";
import { fillRedemptions } from "./fill.ts";
import type { Row } from "./measure.ts";

const receiverCount = 10;

export async function benchWebhooks({ open, size }: Run): Promise<Row[]> {
  const environment = await open();
  const secrets = Array.from({ length: receiverCount }, newWebhookSecret);
  // When each coupon.redeemed came first, by event ID.
  const times = new Map<string, number>();
  const failures: unknown[] = [];
  const answer: Answer = (response, received) => {
    try {
      const event = verify(secrets[Number(received.path.slice(1))]!, received);
      const { event_type, event_id } = event as { event_type: string; event_id: string };
      if (event_type === "coupon.redeemed" && !times.has(event_id)) times.set(event_id, performance.now());
      take(response, received);
    } catch (error) {
      failures.push(error);
      response.destroy();
    }
  };
  let stop: () => unknown = () => {};
  const { url } = await startReceiver({ teardown: (end: () => unknown) => void (stop = end) }, answer);
  const subscribers = secrets.map((secret, number) => ({ id: `pty_hook${number}`, url: `${url}/${number}`, secret }));
  await environment.subscribe(subscribers);

  const batches: string[] = [];
  for (const { id } of subscribers) batches.push(await environment.release(Math.ceil(size / receiverCount), id));
  const wanted = await fillRedemptions(environment, batches);
  const isOver = () => failures.length > 0 || times.size === wanted;
  await waitUntil(`${wanted} deliveries`, isOver, { withinMs });
  if (failures.length > 0) throw failures[0];
  const all = [...times.values()];

  // The worker records the last answers a moment after the receivers gave them.
  await environment.until("the last deliveries", "count(*) = 0 as done from core.delivery");
  await stop();
  const [first, last] = [all[0]!, all.at(-1)!];
  return [{ name: `to ${receiverCount} receivers`, "deliveries/s": wanted / ((last - first) / 1_000) }];
}
