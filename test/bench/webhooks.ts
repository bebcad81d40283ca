// webhooks: deliveries per second to ten receivers on this machine. All events wait when the worker starts.
import { newWebhookSecret } from "../../src/crypto/webhook-signature.ts";
import type { Report } from "./results.ts";
import { fillRedemptions } from "./fill.ts";
import { startChildProcess } from "./child-process.ts";
import { sequenceAll } from "./invariants.ts";
import type { ReceiversJob, ReceiversResult } from "./receivers.ts";
import type { Server } from "./server.ts";
import type { Settings } from "./settings.ts";
import { openEnvironment, patience, type Environment } from "./environment.ts";
import { waitUntil } from "../support/wait-until.ts";

const receiverCount = 10;

export async function benchWebhooks(server: Server, { eventCount }: Settings): Promise<Report> {
  const receivers = startChildProcess<ReceiversJob, ReceiversResult>("receivers.ts");
  const secrets = Array.from({ length: receiverCount }, newWebhookSecret);
  const { ports } = await (await receivers.prepare({ kind: "listen", secrets }))();
  const subscribers = ports.map((port, index) => ({
    id: `pty_hook${index}`,
    url: `http://127.0.0.1:${port}/`,
    secret: secrets[index]!,
  }));

  const environment = await openEnvironment(server, subscribers);
  const share = Math.ceil(eventCount / receiverCount);
  await mintFor(
    environment,
    subscribers.map(({ id }) => id),
    share,
  );
  const wanted = await fillRedemptions(environment);
  await sequenceAll(environment.address);

  const receive = await receivers.prepare({ kind: "receive", wanted });
  const received = receive();
  const worker = await environment.startWorker();
  const { count, seconds, repeats } = await received;
  await untilDelivered(environment);
  await worker.stop();
  receivers.end();
  await environment.close();
  return {
    results: [
      { name: `deliveries to ${receiverCount} receivers`, value: count / seconds, unit: "/s", aim: { atLeast: 1_000 } },
      { name: "delivered again", value: repeats, unit: `of ${count}` },
    ],
  };
}

async function mintFor(environment: Environment, distributors: string[], count: number): Promise<void> {
  const worker = await environment.startWorker();
  const batches = await Promise.all(distributors.map((distributor) => environment.submit(count, distributor)));
  for (const batch of batches) {
    await environment.untilMinted(batch);
    await environment.release(batch);
  }
  // The batches have events too, which are delivered now.
  await untilDelivered(environment);
  await worker.stop();
}

// The worker records the last answers a moment after the receivers gave them.
async function untilDelivered(environment: Environment): Promise<void> {
  const areRecorded = async (): Promise<boolean> => {
    const [row] = await environment.owner.rows<{ waiting: number }>(
      `select (select count(*) from core.delivery)::int
         + (select count(*) from rules.event e, core.sequencer s where e.event_seq > s.high_seq)::int as waiting`,
    );
    return row!.waiting === 0;
  };
  await waitUntil("the last deliveries", areRecorded, patience);
}
