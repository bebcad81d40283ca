// Checks of idempotency: whether an answer is a replay or a refusal of a reused key, and that nothing changed.
import type { Test } from "tap";
import type { Reply } from "./client.ts";
import { fits } from "./fits.ts";
import { tenants } from "./tenants.ts";
import { startService, type Running } from "./service.ts";
import { readState } from "./state.ts";

export const isReplay = (reply: Reply) => reply.headers["idempotent-replayed"] === "true";

/** Fingerprints of all tables, recorded requests included. */
export const readEverything = (service: Running) => readState(service.owner, { withRequests: true });
const readAllButRequests = (service: Running) => readState(service.owner, { withRequests: false });

export type ReplayChecks = {
  /** The retry gets the first answer, byte for byte, and changes nothing. */
  isReplayOf(t: Test, first: Reply, retry: Promise<Reply>, message?: string): Promise<void>;
  /** The same for a retry with a new request_id and the idempotency-key. Only its request_id is recorded. */
  isReplayByKey(t: Test, first: Reply, retry: Promise<Reply>, message?: string): Promise<void>;
  /** The attempt is refused because its request_id or idempotency-key was used for another request. */
  isReused(t: Test, attempt: Promise<Reply>, message?: string): Promise<void>;
};

function createReplayChecks(service: Running): ReplayChecks {
  const checkReplay =
    (read: typeof readEverything): ReplayChecks["isReplayOf"] =>
    async (t, first, retry, message = "a replay") => {
      const before = await read(service);
      const reply = await retry;
      t.strictSame(
        [reply.status, reply.text, reply.headers["idempotent-replayed"]],
        [first.status, first.text, "true"],
        message,
      );
      t.strictSame(await read(service), before, "a replay changes nothing");
    };
  return {
    isReplayOf: checkReplay(readEverything),
    isReplayByKey: checkReplay(readAllButRequests),
    async isReused(t, attempt, message = "reused") {
      const before = await readEverything(service);
      const reply = await attempt;
      fits(t, reply, { status: 422, json: { code: "IDEMPOTENCY_KEY_REUSED", details: null } }, message);
      t.notOk(isReplay(reply));
      t.strictSame(await readEverything(service), before, "a refusal changes nothing");
    },
  };
}

// The service with all tenants, and a client of Variant A with coupons to use.
export async function startReplayService(t: Test) {
  const service = await startService(t, { tenants });
  const a = service.as("ak_a");
  const makeCoupons = async (count: number) => (await service.makeBatch(a, "tpl_fixed", count)).codes;
  return { service, a, makeCoupons, ...createReplayChecks(service) };
}
