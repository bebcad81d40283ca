// What may be operated is decided by ownership: whatever is not the caller's is absent for it, in the same bytes.
import t, { type Test } from "tap";
import { batchKey, makeCode } from "../../../src/crypto/coupon-code.ts";
import { newId } from "../../../src/common/id.ts";
import { routes } from "../../../src/http/routes/table.ts";
import type { Client, Reply } from "../../support/client.ts";
import { secretOf, tenants } from "../../support/provisioning.ts";
import { newRequestId, startService, type Running } from "../../support/service.ts";
import { readState } from "../../support/state.ts";

// Beside the two tenants a second one of Variant B, and in the first a party that has of everything its own.
const [tenantA, strangerA, tenantB] = structuredClone(tenants) as [any, any, any];
const fiveOff = {
  currency: "EUR",
  discount: { type: "fixed", amount: 5 },
  valid_from: "2020-01-01T00:00:00Z",
  valid_to: "2099-01-01T00:00:00Z",
};
tenantB.merchants[0].stores = [
  { external_id: "S1", terminals: ["T1"] },
  { external_id: "S2", terminals: ["T2"] },
];
tenantB.merchants[1].stores = [{ external_id: "S3", terminals: ["T3"] }];
tenantB.templates.push({ id: "tpl_other", name: "theirs", maker: "pty_other", ...fiveOff });
tenantB.templates.push({
  id: "tpl_scoped",
  name: "mch_b2 only",
  maker: "pty_maker",
  merchants: ["mch_b2"],
  ...fiveOff,
});
tenantA.parties.push({ id: "pty_ashop", name: "a shop", time_zone: "UTC" });
tenantA.merchants.push({ id: "mch_ashop", name: "a shop", party: "pty_ashop" });
tenantA.templates.push({ id: "tpl_ashop", name: "the shop's", maker: "pty_ashop", ...fiveOff });
// The stranger uses some of the same ids: inside a tenant they are its own.
const strangerB = {
  id: "ten_b2",
  name: "B, a stranger",
  variant: "B",
  parties: [
    { id: "pty_maker", name: "m" },
    { id: "pty_far", name: "f" },
  ],
  merchants: [
    { id: "mch_b", name: "b", party: "pty_maker" },
    { id: "mch_far", name: "f", party: "pty_far", stores: [{ external_id: "S4", terminals: ["T4"] }] },
  ],
  templates: [
    { id: "tpl_b", name: "theirs", maker: "pty_maker", ...fiveOff },
    { id: "tpl_far", name: "theirs", maker: "pty_maker", ...fiveOff },
  ],
  credentials: [{ access_key: "ak_far", secret: secretOf("ak_far"), party: "pty_maker" }],
};

type Ids = Record<string, string>;
type Operation = { fields: string[]; fieldsInB?: string[]; send: (by: Client, ids: Ids, id: string) => Promise<Reply> };
const pos =
  (path: string): Operation["send"] =>
  (by, { merchant, coupon, store, terminal }, request_id) =>
    by.post(path, { request_id, merchant, coupon, store, terminal });

// Every operation, and the fields in which it takes an id, in the order in which they are looked at.
const operations: Record<string, Operation> = {
  lock: { fields: ["merchant", "coupon"], fieldsInB: ["store", "terminal"], send: pos("/v1/coupons/lock") },
  redeem: { fields: ["merchant", "coupon"], fieldsInB: ["store", "terminal"], send: pos("/v1/coupons/redeem") },
  confirm: {
    fields: ["merchant", "coupon"],
    send: (by, { merchant, coupon, lock_request_id }, request_id) =>
      by.post("/v1/coupons/confirm", { request_id, merchant, coupon, lock_request_id }),
  },
  cancel: {
    fields: ["coupon"],
    send: (by, { coupon, lock_request_id }, request_id) =>
      by.post("/v1/coupons/cancel", { request_id, coupon, lock_request_id }),
  },
  void: {
    fields: ["merchant", "coupon"],
    send: (by, { merchant, coupon }, request_id) => by.post("/v1/coupons/void", { request_id, merchant, coupon }),
  },
  query: {
    fields: ["merchant", "coupon"],
    send: (by, { merchant, coupon }, request_id) => by.post("/v1/coupons/query", { request_id, merchant, coupon }),
  },
  reverse: {
    fields: ["redemption"],
    send: (by, { redemption }, request_id) => by.post("/v1/redemptions/reverse", { request_id, redemption }),
  },
  create_batch: {
    fields: ["template", "distributor"],
    send: (by, { template, distributor }, request_id) =>
      by.post("/v1/batches", { request_id, template, distributor, total_count: 1 }),
  },
  get_batch: { fields: ["batch"], send: (by, { batch }) => by.get(`/v1/batches/${batch}`) },
  allocate_batch: {
    fields: ["batch"],
    send: (by, { batch }, request_id) => by.post("/v1/batches/allocate", { request_id, batch }),
  },
  get_request: {
    fields: ["request"],
    send: (by, { request }) => by.get(`/v1/requests/${encodeURIComponent(request!)}`),
  },
};
const reads = ["query", "get_batch", "get_request"];

t.test("the table below has every operation", (t) => {
  t.strictSame(
    Object.keys(operations).sort(),
    routes
      .map(({ operation }) => operation)
      .filter((name) => !/^(pull_events|.*reconciliation.*)$/.test(name))
      .sort(),
  );
  t.end();
});

let service: Running;
t.before(async () => {
  service = await startService(t, { tenants: [tenantA, strangerA, tenantB, strangerB] });
});

const requestId = () => newRequestId().padEnd(30, "_");

// An answer without what differs between any two: its request_id, the date, and how many unknown codes are left.
function bare({ status, text, headers }: Reply): unknown {
  const { date: _, ratelimit: _left, "x-request-id": id, ...rest } = headers;
  return { status, headers: rest, text: text.replaceAll(decodeURIComponent(String(id)), "…") };
}

async function ok(reply: Promise<Reply>): Promise<any> {
  const { status, text, json } = await reply;
  if (status !== 200) throw new Error(text);
  return json;
}

// What each caller has of its own: ids with which every operation would succeed.
async function makeOwn(
  maker: Client,
  shop: Client,
  template: string,
  merchant: string,
  more: Ids,
): Promise<Record<string, Ids>> {
  const { codes, id: released } = await service.makeBatch(maker, template, 8);
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

// Every operation with one wrong id after the other, then with the right ones, to show that only that id was wrong.
async function refuseWrongIds(
  t: Test,
  variant: "A" | "B",
  byMaker: Client,
  byShop: Client,
  own: Record<string, Ids>,
  wrong: Record<string, string[]>,
) {
  for (const [name, { fields, fieldsInB = [], send }] of Object.entries(operations)) {
    const by = /batch/.test(name) ? byMaker : byShop;
    for (const field of variant === "A" ? fields : [...fields, ...fieldsInB]) {
      await t.test(`${name}: ${field}`, async (t) => {
        const before = await readState(service.owner);
        const [{ count: recorded } = { count: 0 }] = await service.owner.rows<{ count: number }>(
          "select count(*)::int from core.request",
        );
        const [first, ...others] = wrong[field]!;
        const absent = await send(by, { ...own[name], [field]: first! }, requestId());
        t.match(absent, { status: 404, json: { code: "NOT_FOUND", details: { resource: field } } });
        for (const value of others)
          t.strictSame(bare(await send(by, { ...own[name], [field]: value }, requestId())), bare(absent), value);
        t.strictSame(await readState(service.owner), before, "nothing changed");
        const [{ count } = { count: 0 }] = await service.owner.rows<{ count: number }>(
          "select count(*)::int from core.request",
        );
        t.equal(
          count - recorded,
          reads.includes(name) ? 0 : wrong[field]!.length,
          "and each refused write is on record",
        );
      });
    }
    const reply = await send(by, own[name]!, requestId());
    t.equal(reply.status, 200, `${name} with the caller's own ids: ${reply.text}`);
  }
}

// Well-formed and unknown, not an id at all, the id of another kind of thing, and a near miss.
function absentIds(): Record<string, string[]> {
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

function join(...lists: Record<string, string[]>[]): Record<string, string[]> {
  const names = new Set(lists.flatMap((list) => Object.keys(list)));
  return Object.fromEntries([...names].map((name) => [name, lists.flatMap((list) => list[name] ?? [])]));
}

t.test("Variant B: absent, another tenant's and another party's are one answer, and change nothing", async (t) => {
  const [maker, pos, other, far, farA] = ["ak_maker", "ak_pos", "ak_other", "ak_far", "ak_a_stranger"].map(
    service.as,
  ) as [Client, Client, Client, Client, Client];
  const own = await makeOwn(maker, pos, "tpl_b", "mch_b", { store: "S1", terminal: "T1", distributor: "pty_dist" });
  const theirs = await makeOwn(other, other, "tpl_other", "mch_b2", { store: "S3", terminal: "T3" });
  const foreign = await makeOwn(far, far, "tpl_b", "mch_b", {});
  const foreignA = await makeOwn(farA, farA, "tpl_a2s", "mch_a2s", {});
  const idsOf = (of: Record<string, Ids>) => ({
    redemption: [of["reverse"]!["redemption"]!],
    request: [of["get_request"]!["request"]!],
    batch: [of["get_batch"]!["batch"]!, of["allocate_batch"]!["batch"]!],
  });
  const wrong = join(
    absentIds(),
    idsOf(theirs),
    idsOf(foreign),
    idsOf(foreignA),
    { coupon: [foreign["lock"]!["coupon"]!, foreign["confirm"]!["coupon"]!, foreignA["lock"]!["coupon"]!] },
    { merchant: ["mch_b2", "mch_far", "mch_a2s"], store: ["S3", "S4"], terminal: ["T2", "T3", "T4"] },
    { template: ["tpl_other", "tpl_far", "tpl_a2s"], distributor: ["pty_far", "pty_a2"] },
  );
  await refuseWrongIds(t, "B", maker, pos, own, wrong);
});

t.test("Variant A: absent and another tenant's are one answer, and change nothing", async (t) => {
  const [a, strange, far] = ["ak_a", "ak_a_stranger", "ak_far"].map(service.as) as [Client, Client, Client];
  const own = await makeOwn(a, a, "tpl_fixed", "mch_a", {});
  const foreign = await makeOwn(strange, strange, "tpl_a2s", "mch_a2s", {});
  const foreignB = await makeOwn(far, far, "tpl_b", "mch_b", {});
  const idsOf = (of: Record<string, Ids>) => ({
    redemption: [of["reverse"]!["redemption"]!],
    request: [of["get_request"]!["request"]!],
    batch: [of["get_batch"]!["batch"]!, of["allocate_batch"]!["batch"]!],
    coupon: [of["lock"]!["coupon"]!, of["confirm"]!["coupon"]!],
  });
  const wrong = join(absentIds(), idsOf(foreign), idsOf(foreignB), {
    merchant: ["mch_a2s", "mch_far"],
    template: ["tpl_a2s", "tpl_far"],
    distributor: ["pty_a2", "pty_far"],
  });
  await refuseWrongIds(t, "A", a, a, own, wrong);
});

t.test("Variant B: who else may do what with the maker's batch and the shop's coupons", async (t) => {
  const maker = service.as("ak_maker");
  const denied = { status: 404, json: { code: "NOT_FOUND" } };
  for (const caller of ["ak_maker", "ak_dist", "ak_shop", "ak_pos", "ak_other"]) {
    const by = service.as(caller);
    const isMaker = caller === "ak_maker";
    const isShop = caller === "ak_shop" || caller === "ak_pos";
    // A delegate took the locks and redeemed; the merchant's own party and each delegate may reverse.
    const own = await makeOwn(maker, service.as("ak_pos"), "tpl_b", "mch_b", { store: "S1", terminal: "T1" });
    for (const [name, { send }] of Object.entries(operations)) {
      const reply = await send(by, own[name]!, requestId());
      const expected =
        name === "get_request"
          ? caller === "ak_pos"
            ? { status: 200 }
            : denied
          : /batch/.test(name)
            ? isMaker
              ? { status: 200 }
              : denied
            : // A cancel names no merchant; another party has no such lock.
              name === "cancel" || (name === "confirm" && isShop)
              ? caller === "ak_pos"
                ? { status: 200 }
                : { status: 409, json: { code: "LOCK_NOT_FOUND" } }
              : isShop
                ? { status: 200 }
                : denied;
      t.match(reply, expected, `${caller} ${name}: ${reply.text}`);
    }
  }
});

t.test("an id that two tenants have is each tenant's own", async (t) => {
  const far = service.as("ak_far");
  const created = await far.post("/v1/batches", {
    request_id: requestId(),
    template: "tpl_b",
    total_count: 1,
    distributor: "pty_far",
  });
  t.match(created, { status: 200, json: { batch: { maker_party_id: "pty_maker", distributor_party_id: "pty_far" } } });
  t.match(await service.as("ak_maker").get(`/v1/batches/${created.json.batch.external_id}`), { status: 404 });
});

t.test("the first wrong id is the one that is named, before the scope is looked at", async (t) => {
  const [maker, pos] = [service.as("ak_maker"), service.as("ak_pos")];
  const { codes } = await service.makeBatch(maker, "tpl_scoped", 1);
  const good = { coupon: codes[0]!, merchant: "mch_b", store: "S1", terminal: "T1" };
  const wrong: [string, Ids][] = [
    ["merchant", { merchant: "mch_none" }],
    ["coupon", { coupon: absentIds()["coupon"]![0]! }],
    ["store", { store: "none" }],
    ["terminal", { terminal: "none" }],
  ];
  for (const name of ["lock", "redeem"]) {
    for (let first = 0; first < wrong.length; first += 1) {
      const ids = Object.assign({}, good, ...wrong.slice(first).map(([, id]) => id)) as Ids;
      t.match((await operations[name]!.send(pos, ids, requestId())).json, { details: { resource: wrong[first]![0] } });
    }
  }
  for (const name of ["lock", "redeem", "confirm", "void", "query"]) {
    const reply = await operations[name]!.send(pos, { ...good, lock_request_id: "none" }, requestId());
    t.match(reply, { status: 422, json: { code: "MERCHANT_NOT_IN_SCOPE", details: null } }, name);
  }
});
