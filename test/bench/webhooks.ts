// webhooks: deliveries a second to ten receivers on this machine, of what waits when a worker is started.
import { newWebhookSecret } from "../../src/crypto/webhook-signature.ts";
import type { Report } from "./figures.ts";
import { fillRedemptions } from "./fill.ts";
import { startHelper } from "./child-process.ts";
import { sequenceAll } from "./invariants.ts";
import type { ReceiversJob, ReceiversResult } from "./receivers.ts";
import type { Server } from "./server.ts";
import type { Settings } from "./settings.ts";
import { openStage, type Stage } from "./environment.ts";
import { until } from "./wait-until.ts";

const receiverCount = 10;

export async function benchWebhooks(server: Server, { eventCount }: Settings): Promise<Report> {
  const receivers = startHelper<ReceiversJob, ReceiversResult>("receivers.ts");
  const secrets = Array.from({ length: receiverCount }, newWebhookSecret);
  const { ports } = await (await receivers.prepare({ kind: "listen", secrets }))();
  const subscribers = ports.map((port, index) => ({
    id: `pty_hook${index}`,
    url: `http://127.0.0.1:${port}/`,
    secret: secrets[index]!,
  }));

  const stage = await openStage(server, subscribers);
  const share = Math.ceil(eventCount / receiverCount);
  await mintFor(
    stage,
    subscribers.map(({ id }) => id),
    share,
  );
  const wanted = await fillRedemptions(stage);
  await sequenceAll(stage.address);

  const receive = await receivers.prepare({ kind: "receive", wanted });
  const received = receive();
  const worker = await stage.startWorker();
  const { count, seconds, repeats } = await received;
  await untilDelivered(stage);
  await worker.stop();
  receivers.end();
  await stage.close();
  return {
    figures: [
      { name: `deliveries to ${receiverCount} receivers`, value: count / seconds, unit: "/s", aim: { atLeast: 1_000 } },
      { name: "delivered again", value: repeats, unit: `of ${count}` },
    ],
  };
}

async function mintFor(stage: Stage, distributors: string[], count: number): Promise<void> {
  const worker = await stage.startWorker();
  const batches = await Promise.all(distributors.map((distributor) => stage.submit(count, distributor)));
  for (const batch of batches) {
    await stage.untilMinted(batch);
    await stage.release(batch);
  }
  // Of the batches themselves the receivers are told now.
  await untilDelivered(stage);
  await worker.stop();
}

// The last answers are recorded a moment after they were given.
async function untilDelivered(stage: Stage): Promise<void> {
  await until("the last deliveries", async () => {
    const [row] = await stage.owner.rows<{ waiting: number }>(
      `select (select count(*) from core.delivery)::int
         + (select count(*) from core.event e, core.sequencer s where e.event_seq > s.high_seq)::int as waiting`,
    );
    return row!.waiting === 0 ? row : null;
  });
}
