// The service under the model: coupons minted ahead for any number of runs at once, calls by either way, patches by a DBA,
// and a worker who writes down what time has done.
//
// Half a million calls are too many for HTTP. So most runs go straight to the gate, as a process of the service does: the
// route's own reading (shape, code, body hash), groups, lanes, gate.perform. What that leaves out is node, h3 and the
// signature; one run in five has them.
import { createGate, connectionCount, type CredentialRow } from "../../src/gate/gate.ts";
import { connect, sqlState } from "../../src/database/connect.ts";
import type { Database } from "../../src/database/types.ts";
import { batchKey, makeCode } from "../../src/crypto/coupon-code.ts";
import { createLog } from "../../src/common/log.ts";
import { Problem, toAnswer } from "../../src/common/problem.ts";
import { findRequestId, parseInput, readCall } from "../../src/http/read-call.ts";
import { routes } from "../../src/http/routes/table.ts";
import { createExpirer } from "../../src/worker/tasks/expire.ts";
import { randomBytes } from "node:crypto";
import { newId } from "../../src/common/id.ts";
import { noonOffset, setZone, zoneOf } from "../support/business-days.ts";
import { startService, type Running, type Teardown } from "../support/service.ts";
import type { Coupon, Minted, Patch } from "./coupon.ts";
import { casts, document, kindNames, kindOf, validFrom, validTo, type Cast, type KindName } from "./kinds.ts";
import type { Call, Reply } from "./model.ts";
import type { Odd } from "./resolve.ts";

const answerWithinMs = 3_800;
const reads = ["get_batch", "get_request"];

export type World = {
  cast: Cast;
  service: Running;
  odd: Odd;
  take(kind: KindName): Promise<Minted>;
  send(call: Call, body: string, isOverHttp: boolean): Promise<Reply>;
  // The SQLSTATE with which a patch was refused.
  patch(patch: Patch, coupon: Coupon, to?: keyof typeof validTo): Promise<string | null>;
  work(): Promise<void>;
};

export async function openWorld(t: Teardown, variant: "A" | "B", batchSize: number): Promise<World> {
  const cast = casts[variant];
  // Strangers ask for other tenants' coupons here all the time.
  const service = await startService(t, document(cast), {}, { unknownCodesPerMinute: null });
  // No day ends before the runs do.
  await setZone(service, cast.distributor, zoneOf(noonOffset()));
  const { address, keys } = service;
  const gate = createGate({
    log: createLog("silent"),
    connect: () =>
      connect(address, {
        role: "coupon_api",
        name: "coupon model",
        max: connectionCount,
        statementTimeoutMs: 3_000,
        lockTimeoutMs: 2_000,
      }),
  });
  const open = (role: string) => connect(address, { name: "coupon model", role, max: 4 });
  const [owner, admin, worker] = [open("coupon_owner"), open("coupon_admin"), open("coupon_worker")];
  t.teardown(() => Promise.all([gate.end(), owner.end(), admin.end(), worker.end()]));

  const credentials = new Map<string, CredentialRow>();
  for (const { accessKey } of cast.callers)
    credentials.set(accessKey, (await gate.findCredential(accessKey, performance.now() + 5_000))!);
  const ghost = makeCode(keys, keys.current, batchKey(keys, keys.current, randomBytes(32)), 1);
  // The last character is part of the tag.
  const mistyped = ghost.slice(0, -1) + (ghost.endsWith("7") ? "8" : "7");

  async function sendToGate(call: Call, body: string): Promise<Reply> {
    const route = routes.find(({ operation }) => operation === call.operation)!;
    const { tenant_id, credential_id } = credentials.get(call.by.accessKey)!;
    const bytes = Buffer.from(reads.includes(call.operation) ? "" : body);
    const input = parseInput(bytes);
    const requestId = (route.method === "POST" ? findRequestId(input) : null) ?? newId("req");
    // As they would stand in the path.
    const segments = Object.fromEntries(
      Object.entries(call.values).map(([name, value]) => [name, encodeURIComponent(value as string)]),
    );
    try {
      const reading = readCall(
        route,
        variant,
        { query: "", segments, idempotencyKeys: call.key === null ? [] : [call.key], body: bytes, input },
        keys,
      );
      const nonce = randomBytes(12).toString("base64url");
      const {
        status,
        body: text,
        isReplay,
      } = await gate.perform(
        tenant_id,
        { credential_id, nonce, request_id: requestId, ...reading },
        performance.now() + answerWithinMs,
      );
      return { status, text, isReplay, json: JSON.parse(text) };
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      const { status, body: text } = toAnswer(error, requestId);
      return { status, text, isReplay: false, json: JSON.parse(text) };
    }
  }

  async function sendOverHttp(call: Call, body: string): Promise<Reply> {
    const { path, method } = routes.find(({ operation }) => operation === call.operation)!;
    const client = service.as(call.by.accessKey);
    const target = path.replace(/\{(\w+)\}/, (_, name: string) => encodeURIComponent(call.values[name] as string));
    const { status, text, json, headers } =
      method === "GET"
        ? await client.get(target)
        : await client.post(target, body, call.key === null ? {} : { idempotencyKey: call.key });
    return { status, text, json, isReplay: headers["idempotent-replayed"] === "true" };
  }

  const stock = createStock(service, cast, batchSize);
  const expire = createExpirer({ database: worker, stopping: new AbortController().signal });
  let working: Promise<unknown> = Promise.resolve();
  let isNextWaiting: Promise<void> | null = null;

  return {
    cast,
    service,
    odd: { ghost, mistyped },
    take: (kind) => stock.take(kind),
    send: (call, body, isOverHttp) => (isOverHttp ? sendOverHttp(call, body) : sendToGate(call, body)),
    async patch(patch, { id }, to = "usual") {
      try {
        await patchCoupon({ owner, admin }, patch, cast.tenant, id, validTo[to]);
        return null;
      } catch (error) {
        const state = sqlState(error);
        if (state === null) throw error;
        return state;
      }
    },
    // One worker for all runs: who asks while it works waits for its next turn.
    work() {
      isNextWaiting ??= working.then(async () => {
        isNextWaiting = null;
        working = expire().then(() => worker.rows("select jobs.analyze_grown_tables()"));
        await working;
      });
      return isNextWaiting;
    },
  };
}

// Time passes where somebody who may moves it: the row of a lock, the end of a validity.
async function patchCoupon(
  { owner, admin }: { owner: Database; admin: Database },
  patch: Patch,
  tenant: string,
  coupon: string,
  end: string,
): Promise<void> {
  switch (patch) {
    case "lapse":
      await owner.rows(
        `update core.redemption r set lock_expires_at = clock_timestamp()
         where r.coupon_id = rules.parse_id('cpn', $1) and r.status = 'LOCKED' and r.lock_expires_at > clock_timestamp()`,
        [coupon],
      );
      return;
    case "begin":
      await owner.rows("update core.coupon c set valid_from = $2 where c.coupon_id = rules.parse_id('cpn', $1)", [
        coupon,
        validFrom.usual,
      ]);
      return;
    case "extend":
      return void (await admin.rows("select admin.extend_coupon($1, $2, $3, 'model')", [tenant, coupon, end]));
    case "release":
      return void (await admin.rows("select admin.release_lock($1, $2, 'model')", [tenant, coupon]));
    case "withdraw":
      return void (await admin.rows("select admin.void_coupon($1, $2, 'model')", [tenant, coupon]));
  }
}

// Coupons of each template, minted a batch at a time. A batch that is not released has one coupon, as releasing it is a
// step of a run.
function createStock(service: Running, cast: Cast, batchSize: number) {
  const piles = new Map<KindName, Minted[]>(kindNames.map((kind) => [kind, []]));
  const by = service.as(cast.makerKey);
  let minting: Promise<void> = Promise.resolve();

  async function mint(kind: KindName): Promise<void> {
    const pile = piles.get(kind)!;
    if (pile.length > 0) return;
    const isReleased = kindOf(kind).isUnreleased !== true;
    for (let batches = isReleased ? 1 : 20; batches > 0; batches -= 1) {
      const { id, codes, couponIds } = await service.makeBatch(by, `tpl_${kind}`, isReleased ? batchSize : 1, {
        isReleased,
      });
      pile.push(...codes.map((code, index) => ({ code, id: couponIds[index]!, batch: id })));
    }
  }

  return {
    async take(kind: KindName): Promise<Minted> {
      for (;;) {
        const minted = piles.get(kind)!.pop();
        if (minted !== undefined) return minted;
        minting = minting.then(() => mint(kind));
        await minting;
      }
    },
  };
}
