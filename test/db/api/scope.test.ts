// Every operation works on the caller's own IDs only. Unknown IDs and other callers' IDs get the same answer, byte for
// byte.
import t, { type Test } from "tap";
import { batchKey, makeCode } from "../../../src/crypto/coupon-code.ts";
import { newId } from "../../../src/common/id.ts";
import { routes } from "../../../src/http/routes/table.ts";
import type { Client, Reply } from "../../support/client.ts";
import { fits } from "../../support/fits.ts";
import { newRequestId, startService, type Running } from "../../support/service.ts";
import { readState } from "../../support/state.ts";
import { operations, reads, scopeTenants, sentByMaker, type Ids } from "./scope-callers.ts";

// webhook-scope.test.ts and the tests of feeds and statements have the others.
t.test("scope-callers.ts has every operation except feeds, statements and webhooks", (t) => {
  t.strictSame(
    Object.keys(operations).sort(),
    routes
      .map(({ operation }) => operation)
      .filter((name) => !/^(pull_events|replay_events|.*(reconciliation|webhook).*)$/.test(name))
      .sort(),
  );
  t.end();
});

let service: Running;
t.before(async () => {
  service = await startService(t, { tenants: scopeTenants });
});

const requestId = () => newRequestId().padEnd(30, "_");

// An answer without the parts that differ between any two answers: request_id, date and remaining rate limit.
function bare({ status, text, headers }: Reply): unknown {
  const { date: _, ratelimit: _left, "x-request-id": id, ...rest } = headers;
  return { status, headers: rest, text: text.replaceAll(decodeURIComponent(String(id)), "…") };
}

async function ok(reply: Promise<Reply>): Promise<any> {
  const { status, text, json } = await reply;
  if (status !== 200) throw new Error(text);
  return json;
}

// For each operation, the caller's own IDs, with which the operation succeeds.
async function makeOwn(
  maker: Client,
  shop: Client,
  template: string,
  merchant: string,
  more: Ids,
): Promise<Record<string, Ids>> {
  // At most one coupon for each operation.
  const { codes, id: released } = await service.makeBatch(maker, template, Object.keys(operations).length);
  const { id: batch } = await service.makeBatch(maker, template, 1, { isReleased: false });
  const fresh = () => ({ merchant, coupon: codes.pop()!, template, ...more });
  const own: Record<string, Ids> = {};
  for (const name of ["lock", "redeem", "void", "query", "create_batch"]) own[name] = fresh();
  for (const name of ["confirm", "cancel"]) {
    const ids = { ...fresh(), lock_request_id: requestId() };
    await ok(operations["lock"]!.send(shop, ids, ids.lock_request_id));
    own[name] = ids;
  }
  const request = requestId();
  const { redemption } = await ok(operations["redeem"]!.send(shop, fresh(), request));
  return {
    ...own,
    reverse: { redemption },
    get_request: { request },
    get_batch: { batch: released },
    allocate_batch: { batch },
  };
}

async function countRequests(): Promise<number> {
  const [row] = await service.owner.rows<{ count: number }>("select count(*)::int as count from core.request");
  return row!.count;
}

// Sends every operation with each wrong ID in turn, then with the right IDs, to show that only the wrong ID was the
// reason.
async function refuseWrongIds(
  t: Test,
  variant: "A" | "B",
  byMaker: Client,
  byShop: Client,
  own: Record<string, Ids>,
  wrong: Record<string, string[]>,
) {
  for (const [name, { fields, fieldsInB = [], send }] of Object.entries(operations)) {
    const by = sentByMaker.includes(name) ? byMaker : byShop;
    for (const field of variant === "A" ? fields : [...fields, ...fieldsInB]) {
      await t.test(`${name}: ${field}`, async (t) => {
        const before = await readState(service.owner);
        const recorded = await countRequests();
        const [first, ...others] = wrong[field]!;
        const unknown = await send(by, { ...own[name], [field]: first! }, requestId());
        fits(t, unknown, { status: 404, json: { code: "NOT_FOUND", details: { resource: field } } });
        for (const value of others)
          t.strictSame(bare(await send(by, { ...own[name], [field]: value }, requestId())), bare(unknown), value);
        t.strictSame(await readState(service.owner), before, "nothing changes");
        const expected = reads.includes(name) ? 0 : wrong[field]!.length;
        t.equal((await countRequests()) - recorded, expected, "each refused write is recorded");
      });
    }
    const reply = await send(by, own[name]!, requestId());
    t.equal(reply.status, 200, `${name} with the caller's own IDs: ${reply.text}`);
  }
}

// For each field: well-formed unknown IDs, malformed IDs, IDs of another kind, and near misses.
function unknownIds(): Record<string, string[]> {
  const unknownCode = makeCode(service.keys, "1", batchKey(service.keys, "1", Buffer.alloc(32, 9)), 1);
  return {
    merchant: ["mch_none", "?", "pty_shop", "MCH_B", "mch_b ", "mch_b%"],
    coupon: [unknownCode],
    store: ["none", "T1", "s1", "S1 "],
    terminal: ["none", "S1", "t1"],
    template: ["tpl_none", "?", "mch_b", "tpl_b'", "TPL_B"],
    distributor: ["pty_none", "?", "mch_b", "PTY_DIST"],
    batch: [newId("bat"), "bat_none", "x", "tpl_b"],
    redemption: [
      newId("red"),
      newId("red").toUpperCase(),
      newId("rvs"),
      newId("cpn"),
      "red_",
      "red_none",
      "?",
      `red_${"8".repeat(26)}`,
    ],
    request: ["never-seen", "none"],
  };
}

// The IDs that another caller owns. `theirs` is the result of makeOwn.
const idsOf = (theirs: Record<string, Ids>) => ({
  redemption: [theirs["reverse"]!["redemption"]!],
  request: [theirs["get_request"]!["request"]!],
  batch: [theirs["get_batch"]!["batch"]!, theirs["allocate_batch"]!["batch"]!],
});
const couponsOf = (theirs: Record<string, Ids>) => [theirs["lock"]!["coupon"]!, theirs["confirm"]!["coupon"]!];

function join(...lists: Record<string, string[]>[]): Record<string, string[]> {
  const names = new Set(lists.flatMap((list) => Object.keys(list)));
  return Object.fromEntries([...names].map((name) => [name, lists.flatMap((list) => list[name] ?? [])]));
}

t.test("Variant B: unknown IDs, other tenants' IDs and other parties' IDs get the same 404", async (t) => {
  const [maker, pos, other, far, farA] = ["ak_maker", "ak_pos", "ak_other", "ak_far", "ak_a_stranger"].map(
    service.as,
  ) as [Client, Client, Client, Client, Client];
  const own = await makeOwn(maker, pos, "tpl_b", "mch_b", { store: "S1", terminal: "T1", distributor: "pty_dist" });
  const theirs = await makeOwn(other, other, "tpl_other", "mch_b2", { store: "S3", terminal: "T3" });
  const foreign = await makeOwn(far, far, "tpl_b", "mch_b", {});
  const foreignA = await makeOwn(farA, farA, "tpl_a2s", "mch_a2s", {});
  const wrong = join(
    unknownIds(),
    idsOf(theirs),
    idsOf(foreign),
    idsOf(foreignA),
    { coupon: [...couponsOf(foreign), foreignA["lock"]!["coupon"]!] },
    { merchant: ["mch_b2", "mch_far", "mch_a2s"], store: ["S3", "S4"], terminal: ["T2", "T3", "T4"] },
    { template: ["tpl_other", "tpl_far", "tpl_a2s"], distributor: ["pty_far", "pty_a2"] },
  );
  await refuseWrongIds(t, "B", maker, pos, own, wrong);
});

t.test("Variant A: unknown IDs and other tenants' IDs get the same 404", async (t) => {
  const [a, strange, far] = ["ak_a", "ak_a_stranger", "ak_far"].map(service.as) as [Client, Client, Client];
  const own = await makeOwn(a, a, "tpl_fixed", "mch_a", {});
  const foreign = await makeOwn(strange, strange, "tpl_a2s", "mch_a2s", {});
  const foreignB = await makeOwn(far, far, "tpl_b", "mch_b", {});
  const wrong = join(unknownIds(), idsOf(foreign), idsOf(foreignB), {
    coupon: [...couponsOf(foreign), ...couponsOf(foreignB)],
    merchant: ["mch_a2s", "mch_far"],
    template: ["tpl_a2s", "tpl_far"],
    distributor: ["pty_a2", "pty_far"],
  });
  await refuseWrongIds(t, "A", a, a, own, wrong);
});

// The expected answer when another party uses the IDs of the maker and of the delegate ak_pos.
function expectedFor(caller: string, name: string): object {
  const allowed = { status: 200 };
  const denied = { status: 404, json: { code: "NOT_FOUND" } };
  const isShop = caller === "ak_shop" || caller === "ak_pos";
  if (name === "get_request") return caller === "ak_pos" ? allowed : denied;
  if (sentByMaker.includes(name)) return caller === "ak_maker" ? allowed : denied;
  // A cancel names no merchant, so every party gets to the lock, which only its owner finds.
  if (name === "cancel" || (name === "confirm" && isShop))
    return caller === "ak_pos" ? allowed : { status: 409, json: { code: "LOCK_NOT_FOUND" } };
  return isShop ? allowed : denied;
}

t.test("Variant B: the maker operates its batches; the merchant's party and its delegates its coupons", async (t) => {
  const maker = service.as("ak_maker");
  for (const caller of ["ak_maker", "ak_dist", "ak_shop", "ak_pos", "ak_other"]) {
    // A delegate locks and redeems. The merchant's own party and each delegate may reverse.
    const own = await makeOwn(maker, service.as("ak_pos"), "tpl_b", "mch_b", { store: "S1", terminal: "T1" });
    for (const [name, { send }] of Object.entries(operations)) {
      const reply = await send(service.as(caller), own[name]!, requestId());
      fits(t, reply, expectedFor(caller, name), `${caller} ${name}: ${reply.text}`);
    }
  }
});

t.test("The same ID in two tenants names two different things", async (t) => {
  const far = service.as("ak_far");
  const created = await far.post("/v1/batches", {
    request_id: requestId(),
    template: "tpl_b",
    total_count: 1,
    distributor: "pty_far",
  });
  fits(t, created, { status: 200, json: { batch: { maker_party_id: "pty_maker", distributor_party_id: "pty_far" } } });
  fits(t, await service.as("ak_maker").get(`/v1/batches/${created.json.batch.external_id}`), { status: 404 });
});

t.test("The answer names the first wrong ID; the merchant scope is checked after all IDs", async (t) => {
  const [maker, pos] = [service.as("ak_maker"), service.as("ak_pos")];
  const { codes } = await service.makeBatch(maker, "tpl_scoped", 1);
  const good = { coupon: codes[0]!, merchant: "mch_b", store: "S1", terminal: "T1" };
  const wrong: [string, Ids][] = [
    ["merchant", { merchant: "mch_none" }],
    ["coupon", { coupon: unknownIds()["coupon"]![0]! }],
    ["store", { store: "none" }],
    ["terminal", { terminal: "none" }],
  ];
  for (const name of ["lock", "redeem"]) {
    for (let first = 0; first < wrong.length; first += 1) {
      const ids = Object.assign({}, good, ...wrong.slice(first).map(([, id]) => id)) as Ids;
      fits(t, (await operations[name]!.send(pos, ids, requestId())).json, { details: { resource: wrong[first]![0] } });
    }
  }
  for (const name of ["lock", "redeem", "confirm", "void", "query"]) {
    const reply = await operations[name]!.send(pos, { ...good, lock_request_id: "none" }, requestId());
    fits(t, reply, { status: 422, json: { code: "MERCHANT_NOT_IN_SCOPE", details: null } }, name);
  }
});
