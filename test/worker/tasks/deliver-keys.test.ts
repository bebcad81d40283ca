// A worker may claim deliveries whose secret it cannot open, for example during a rotation of the master key.
import { randomBytes } from "node:crypto";
import t from "tap";
import { parseMasterKeys } from "../../../src/crypto/keys.ts";
import { createDeliverer } from "../../../src/worker/tasks/deliver.ts";
import { fits } from "../../support/fits.ts";
import { startReceiver } from "../../support/receiver.ts";
import { createStubLog } from "../../support/stub.ts";
import { findSubscriber, listAttempts, listDeliveries, startDeliverer, subscribe } from "../../support/subscribers.ts";

t.test("a worker without the key of a secret sends nothing, and costs the delivery no attempt", async (t) => {
  const receiver = await startReceiver(t);
  const fixture = await subscribe(t, [receiver.url]);
  const [event] = await fixture.happen("pty_s1", 1);
  const keys = parseMasterKeys(`2:${randomBytes(32).toString("base64")}`);
  const old = startDeliverer({ ...fixture, service: { ...fixture.service, keys } }, fixture.worker);
  for (let round = 0; round < 12; round += 1) {
    await t.rejects(old.deliver(await findSubscriber(fixture, "pty_s1")), { message: /key/ });
    // Its lease runs out.
    await fixture.service.owner.rows("update core.webhook set lease_until = clock_timestamp()");
  }
  t.strictSame([receiver.received.length, (await listAttempts(fixture)).length], [0, 0]);
  fits(t, await listDeliveries(fixture), [{ event, status: "WAITING", attempt_count: 0, is_due: true }]);
  await startDeliverer(fixture, fixture.worker).drain();
  t.strictSame(
    receiver.received.map(({ id }) => id),
    [event],
  );
});

t.test("with the wrong master key nothing is sent, and the lease is the pause before the next attempt", async (t) => {
  const receiver = await startReceiver(t);
  const fixture = await subscribe(t, [receiver.url]);
  await fixture.happen("pty_s1", 1);
  const keys = parseMasterKeys(Buffer.alloc(32, 5).toString("base64"));
  const stranger = createDeliverer({
    database: fixture.worker,
    keys,
    send: async () => t.fail("sent") as never,
    getSession: () => fixture.session,
    stopping: new AbortController().signal,
    log: createStubLog().logger,
  });
  await t.rejects(stranger.deliver(await findSubscriber(fixture, "pty_s1")), { message: /does not open/ });
  t.equal((await stranger.listDue()).length, 0);
  fits(t, await listDeliveries(fixture), [{ attempt_count: 0 }]);
});
