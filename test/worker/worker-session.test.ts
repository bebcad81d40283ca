// The session that shows other workers that this one lives.
import t from "tap";
import { openSession } from "../../src/database/connect.ts";
import { keepWorkerSession } from "../../src/worker/worker-session.ts";
import { createDatabase } from "../support/database.ts";
import { startProxy } from "../support/proxy.ts";
import { createStubLog } from "../support/stub.ts";
import { waitUntil } from "../support/wait-until.ts";

t.test("those who claimed under a session learn that it is lost, and the next one has another number", async (t) => {
  const { address, drop } = await createDatabase();
  const proxy = await startProxy(address);
  const { logger, log } = createStubLog();
  const session = keepWorkerSession({
    open: (options) =>
      openSession({ ...address, host: "127.0.0.1", port: proxy.port }, { role: "coupon_worker", ...options }),
    onSilent() {},
    log: logger,
  });
  t.teardown(async () => {
    await session.stop();
    await proxy.stop();
    await drop();
  });
  const first = await waitUntil("the first session", session.get);
  t.equal(first.lost.aborted, false);
  proxy.cutAll();
  const second = await waitUntil("the next session", () => (session.get() === first ? null : session.get()));
  t.equal(first.lost.aborted, true);
  t.equal(second.lost.aborted, false);
  t.not(second.number, first.number);
  t.strictSame(
    log.map(({ level, msg }) => [level, msg]),
    [
      [40, "the session of the worker is lost; its work goes on in another one"],
      [30, "the worker has a session again"],
    ],
  );
});
