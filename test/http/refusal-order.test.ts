// The order of refusals before an operation decides: each route gets requests that deserve two refusals, and answers
// with the one that comes first in the table of docs/integrate.md.
import { readFileSync } from "node:fs";
import t from "tap";
import { newNonce } from "../../clients/typescript/src/signature.ts";
import { batchKey, makeCode } from "../../src/crypto/coupon-code.ts";
import { sign } from "../../clients/typescript/src/signature.ts";
import type { Route } from "../../src/http/route.ts";
import { routes } from "../../src/http/routes/table.ts";
import { sendPlain } from "../support/client.ts";
import { fits } from "../support/fits.ts";
import { secretOf } from "../support/tenants.ts";
import { newRequestId, startService, type Running } from "../support/service.ts";
import { bodies } from "../support/stub.ts";

type Draft = {
  url: string;
  method: string;
  target: string;
  body: Record<string, unknown> | null;
  padding: number;
  type: string;
  secret: string;
  timestamp: number;
  nonce: string;
};
type Fault = { code: string; applies: (route: Route) => boolean; add: (draft: Draft) => void };

let service: Running;
// The same database, behind limits that are used up.
let limited: Running;
const usedNonce = newNonce();
const wrongTag = "0000000000000000";

t.before(async () => {
  service = await startService(t);
  const on = { address: service.address, masterKeyText: service.masterKeyText };
  limited = await startService(t, null, { on }, { requestsPerSecond: 0.0001, requestBurst: 1 });
  t.equal((await limited.as("ak_maker").get("/v1/events")).status, 200, "the only request within the limit");
  await service.as("ak_maker").get("/v1/events", { nonce: usedNonce });
  const body = { request_id: "used before", batch: "bat_none" };
  fits(t, await service.as("ak_maker").post("/v1/batches/allocate", body), { status: 404 });
});

// In the documented order. A request without a fault has unknown IDs, so it deserves a NOT_FOUND.
const faults: Fault[] = [
  { code: "METHOD_NOT_ALLOWED", applies: () => true, add: (draft) => (draft.method = "PUT") },
  { code: "PAYLOAD_TOO_LARGE", applies: () => true, add: (draft) => (draft.padding = 70_000) },
  {
    code: "UNSUPPORTED_MEDIA_TYPE",
    applies: ({ method }) => method === "POST",
    add: (draft) => (draft.type = "text/plain"),
  },
  { code: "UNAUTHENTICATED", applies: () => true, add: (draft) => (draft.secret = "a wrong secret") },
  { code: "TIMESTAMP_OUT_OF_WINDOW", applies: () => true, add: (draft) => (draft.timestamp -= 900) },
  { code: "NONCE_REUSED", applies: () => true, add: (draft) => (draft.nonce = usedNonce) },
  { code: "RATE_LIMITED", applies: () => true, add: (draft) => (draft.url = limited.url) },
  {
    code: "INVALID_REQUEST",
    applies: () => true,
    add: (draft) => {
      if (draft.body === null) draft.target += "?unknown=1";
      else draft.body["unknown"] = 1;
    },
  },
  {
    code: "COUPON_CODE_INVALID",
    applies: ({ path }) => "coupon" in (bodies[path] ?? {}),
    add: (draft) => (draft.body!["coupon"] = wrongTag),
  },
  {
    code: "IDEMPOTENCY_KEY_REUSED",
    applies: ({ isWrite }) => isWrite,
    add: (draft) => {
      draft.body!["request_id"] = "used before";
      // Equal to no earlier body, also where the operation is the same.
      if ("batch" in draft.body!) draft.body["batch"] = "bat_other";
    },
  },
  {
    code: "NOT_FOUND",
    applies: ({ operation }) => !/^(pull_events|list_reconciliations)$/.test(operation),
    add: () => {},
  },
];

async function send(route: Route, chosen: Fault[]): Promise<string> {
  const coupon = makeCode(service.keys, "1", batchKey(service.keys, "1", Buffer.alloc(32, 9)), 1);
  const draft: Draft = {
    url: service.url,
    method: route.method,
    target: route.path
      .replace("{date}", "2026-01-01")
      .replace("{kind}", "detail")
      .replace(/\{\w+\}/, "unknown"),
    body:
      route.method === "POST" ? { ...bodies[route.path], ...("coupon" in bodies[route.path]! && { coupon }) } : null,
    padding: 0,
    type: "application/json",
    secret: secretOf("ak_maker"),
    timestamp: Math.floor(Date.now() / 1000),
    nonce: newNonce(),
  };
  if (draft.body !== null && "request_id" in draft.body) draft.body["request_id"] = newRequestId();
  for (const { add } of chosen) add(draft);
  const body = Buffer.from((draft.body === null ? "" : JSON.stringify(draft.body)) + " ".repeat(draft.padding));
  const { method, target, nonce } = draft;
  const timestamp = String(draft.timestamp);
  const reply = await sendPlain(
    draft.url,
    method,
    target,
    {
      "content-type": draft.type,
      "x-svc-access-key": "ak_maker",
      "x-svc-timestamp": timestamp,
      "x-svc-nonce": nonce,
      "x-svc-signature": sign(draft.secret, { method, target, timestamp, nonce, body }),
    },
    body,
  );
  return reply.json?.code ?? String(reply.status);
}

for (const route of routes)
  t.test(`${route.operation}: of two refusals the first in the table is given`, async (t) => {
    const own = faults.filter(({ applies }) => applies(route));
    for (const [index, first] of own.entries()) {
      t.equal(await send(route, [first]), first.code, `${first.code} alone`);
      for (const second of own.slice(index + 1))
        t.equal(await send(route, [first, second]), first.code, `${first.code} and ${second.code}`);
    }
  });

t.test("The faults are in the order of the table in integrate.md", async (t) => {
  const table = readFileSync("docs/integrate.md", "utf8").matchAll(/^\| \d{3} \| `([A-Z_]+)` \|/gmu);
  const order = [...table].map(([, code]) => code!);
  const codes = faults.map(({ code }) => code);
  t.strictSame(
    order.filter((code) => codes.includes(code)),
    codes,
  );
});
