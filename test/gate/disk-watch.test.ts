// The gate notices a full disk, says so once, and notices its end.
import t from "tap";
import { createDiskWatch } from "../../src/gate/disk-watch.ts";
import { createStubLog } from "../support/stub.ts";

const fullDisk = new Error("could not extend file: No space left on device");
const isDiskFull = (error: unknown) => error === fullDisk;

function watchFor(quietMs: number) {
  const { logger, log } = createStubLog();
  const watch = createDiskWatch({ isDiskFull, log: logger, quietMs });
  return {
    said: () => log.map(({ msg }) => msg),
    watch,
    fail: (error: Error) => watch.observe(Promise.reject(error)).catch((caught: unknown) => caught),
  };
}

const full = "the disk of the database is full: calls get 503 until there is space again";
const over = "the disk of the database has space again";

t.test("many failures are one line; successes between them do not end it", async (t) => {
  const { said, watch, fail } = watchFor(Infinity);
  await fail(new Error("the connection was lost"));
  t.equal(watch.isFull(), false, "other errors say nothing about the disk");
  for (let number = 0; number < 5; number += 1) {
    t.equal(await fail(fullDisk), fullDisk, "the error passes through");
    t.equal(await watch.observe(Promise.resolve(number)), number, "and so does a result");
  }
  t.equal(watch.isFull(), true);
  t.strictSame(said(), [full]);
});

t.test("after a pause calls may be tried again; the first success ends it", async (t) => {
  const { said, watch, fail } = watchFor(0);
  await fail(fullDisk);
  t.equal(watch.isFull(), false, "so that a load balancer sends calls again");
  t.equal(watch.mode(), "full", "and until one succeeds, the metrics say that it is full");
  await fail(fullDisk);
  t.strictSame(said(), [full]);
  await watch.observe(Promise.resolve());
  await watch.observe(Promise.resolve());
  t.strictSame([watch.mode(), said()], ["clear", [full, over]]);
  await fail(fullDisk);
  t.strictSame(said(), [full, over, full]);
});
