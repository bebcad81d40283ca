// What is refused before an operation decides, and in which order: path, method, size, content type, signature, body.
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { STATUS_CODES, type IncomingMessage } from "node:http";
import t, { type Test } from "tap";
import { newNonce, sign, signedHeaders } from "../../clients/typescript/src/signature.ts";
import { newRequestId } from "../support/request-id.ts";
import { batchKey, makeCode } from "../../src/crypto/coupon-code.ts";
import { isJson } from "../../src/http/body.ts";
import type { Route } from "../../src/http/route.ts";
import { routes } from "../../src/http/routes/table.ts";
import { openConnection, sendBytes, sendPlain } from "../support/client.ts";
import { fits } from "../support/fits.ts";
import { scenario, type Scenario } from "../support/scenario.ts";
import { bodies, code, lockPath, secret, startStub } from "../support/stub.ts";
import { secretOf } from "../support/tenants.ts";
import { waitFor, waitUntil } from "../support/wait-until.ts";

const json = { "content-type": "application/json" };

const is = (t: Test, answer: { status: number; json: any }, status: number, expected: string, what: string) =>
  t.strictSame([answer.status, answer.json?.code], [status, expected], what);

t.test("An unknown path is 404, signed or not and whatever the body", async (t) => {
  const { url, asA, lookups } = await startStub(t);
  const paths = [
    "/",
    "/v1",
    "/v2/coupons/lock",
    "/v1/coupons/lock/",
    "/v1//coupons/lock",
    "/v1/x/../coupons/lock",
    "/v1/coupons/l%6fck",
    "/v1/coupons%2Flock",
    "/v1/coupons/LOCK",
    "/v1/coupons/%zz",
    "/v1/batches/",
    "/v1/batches/a/b",
    "/healthz/",
    "http://other.example",
    "http://other.example/v1/coupons/lock/",
    "ftp://other.example/v1/coupons/lock",
    "/http://other.example/v1/coupons/lock",
    "//v1/coupons/lock",
  ];
  for (const path of paths) {
    for (const method of ["GET", "POST"])
      is(t, await sendPlain(url, method, path), 404, "ROUTE_NOT_FOUND", `${method} ${path}`);
  }
  is(t, await asA.post("/v1/coupons/lock/", bodies[lockPath]), 404, "ROUTE_NOT_FOUND", "signed");
  const large = await sendPlain(url, "POST", "/nothing", {}, "x".repeat(70_000));
  is(t, large, 404, "ROUTE_NOT_FOUND", "a body that is too large");
  t.strictSame(lookups, []);
});

t.test("A wrong method is 405, and the answer names the right one", async (t) => {
  const { url } = await startStub(t);
  const wrong: [method: string, path: string, allow: string][] = [
    ["GET", lockPath, "POST"],
    ["PUT", lockPath, "POST"],
    ["OPTIONS", lockPath, "POST"],
    ["HEAD", lockPath, "POST"],
    ["HEAD", "http://other.example/v1/coupons/lock", "POST"],
    ["DELETE", "/v1/batches/bat_1", "GET, HEAD"],
    ["GET", "/v1/batches/allocate", "POST"],
    ["GET", "/v1/batches/suspend", "POST"],
    ["POST", "/v1/events", "GET, HEAD"],
    ["POST", "/healthz", "GET, HEAD"],
  ];
  for (const [method, path, allow] of wrong) {
    const answer = await sendPlain(url, method, path);
    t.strictSame([answer.status, answer.headers["allow"]], [405, allow], `${method} ${path}`);
    if (method !== "HEAD") t.equal(answer.json.code, "METHOD_NOT_ALLOWED");
    else t.equal(answer.text, "");
  }
});

t.test("Any Host will do, also one that makes no URL with the target", async (t) => {
  const { url } = await startStub(t);
  for (const host of ["a:99999", "1.2.3.999", "[::::]", ""])
    for (const [target, status] of [
      ["/..", 404],
      ["/%41", 404],
      ["/v1/requests/a%3Ab", 401],
      ['/healthz?"', 200],
      ["http://a:99999/..", 404],
    ] as const) {
      const answer = await sendBytes(url, `GET ${target} HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`);
      t.equal(answer.split("\r\n")[0], `HTTP/1.1 ${status} ${STATUS_CODES[status]}`, `${target} at ${host}`);
    }
});

t.test("A target in absolute form is served as its path and query, and signed as it is sent", async (t) => {
  const { url, asA, calls } = await startStub(t);
  for (const host of ["http://any.example", "HTTPS://any.example:8443", "http://[::1]:80"]) {
    t.equal((await asA.get(`${host}/v1/events?limit=7`)).status, 200, host);
    fits(t, calls.pop(), { operation: "pull_events", args: { limit: 7 } });
    t.equal((await asA.post(`${host}${lockPath}`, bodies[lockPath])).status, 200);
    t.equal(calls.pop()!.operation, "lock");
    is(t, await asA.get(`${host}/v1/events?limit=`), 400, "INVALID_REQUEST", "the query counts");
    t.equal((await sendPlain(url, "GET", `${host}/healthz`)).status, 200);
  }
  const pathAlone = { method: "GET", target: "/v1/batches/bat_1", body: Buffer.alloc(0), nonce: newNonce() };
  const timestamp = String(Math.floor(Date.now() / 1000));
  const headers = { "x-svc-signature": sign(secret, { ...pathAlone, timestamp }) };
  const options = { nonce: pathAlone.nonce, timestamp, headers };
  is(
    t,
    await asA.get("http://a.example/v1/batches/bat_1", options),
    401,
    "UNAUTHENTICATED",
    "the path alone is signed",
  );
  t.equal((await asA.get("/v1/batches/bat_1", options)).status, 200);
});

t.test("A body above 64 KiB is 413 before any other check, with a declared length or in chunks", async (t) => {
  const { url, asA, calls, lookups } = await startStub(t);
  const limit = 64 * 1024;
  const post = (size: number, type = "text/plain") =>
    sendPlain(url, "POST", lockPath, { "content-type": type }, "x".repeat(size));
  is(t, await post(limit + 1), 413, "PAYLOAD_TOO_LARGE", "declared");
  is(t, await asA.post(lockPath, "x".repeat(limit + 1)), 413, "PAYLOAD_TOO_LARGE", "signed");
  const head = `POST ${lockPath} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nconnection: close\r\n`;
  const chunk = `400\r\n${" ".repeat(1_024)}\r\n`;
  const sendChunks = (count: number) =>
    sendBytes(url, `${head}transfer-encoding: chunked\r\n\r\n${chunk.repeat(count)}0\r\n\r\n`);
  for (const count of [65, 3_000])
    t.match(await sendChunks(count), /^HTTP\/1.1 413 [^]*PAYLOAD_TOO_LARGE/, `${count} KiB in chunks`);
  t.strictSame(lookups, []);

  const body = JSON.stringify({ ...bodies[lockPath], order_id: "o" }).padEnd(limit, " ");
  t.equal((await asA.post(lockPath, body)).status, 200, "exactly 64 KiB");
  t.equal(calls.length, 1);
  t.match(await sendChunks(64), /^HTTP\/1.1 401 /, "exactly 64 KiB in chunks");
});

t.test("A client that expects 100-continue is told to send its body, unless that is above 64 KiB", async (t) => {
  const { url } = await startStub(t);
  const begin = async (length: number) => {
    const connection = await openConnection(t, url);
    connection.socket.write(
      `POST ${lockPath} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nexpect: 100-continue\r\n` +
        `content-length: ${length}\r\nconnection: close\r\n\r\n`,
    );
    await waitFor("an answer", once(connection.socket, "data"));
    return connection;
  };
  const { socket, received } = await begin(64 * 1024);
  t.equal(received(), "HTTP/1.1 100 Continue\r\n\r\n");
  socket.write(" ".repeat(64 * 1024));
  await waitUntil("the answer", () => received().includes("HTTP/1.1 401 "));
  t.match((await begin(64 * 1024 + 1)).received(), /^HTTP\/1.1 413 /);
});

t.test("A content type other than JSON in UTF-8 is 415, before the signature is checked", async (t) => {
  const { url, lock, lookups } = await startStub(t);
  const types = [
    "text/plain",
    "application/x-www-form-urlencoded",
    "application/problem+json",
    "application/jsonp",
    "application/json; charset=latin1",
    "application/json; charset=utf--8",
    "application/json; charset=utf-16",
    "application/json, text/plain",
    "application/json; charset=utf-8; x=y",
    "application/json;;",
    "application/json utf-8",
  ];
  const refused: Record<string, string>[] = types.map((type) => ({ "content-type": type }));
  for (const headers of [...refused, {}, { ...json, "content-encoding": "gzip" }])
    is(
      t,
      await sendPlain(url, "POST", lockPath, headers, "{}"),
      415,
      "UNSUPPORTED_MEDIA_TYPE",
      JSON.stringify(headers),
    );
  t.strictSame(lookups, []);
  for (const type of [
    "Application/JSON",
    "application/json;charset=UTF-8",
    'application/json; charset="utf-8"',
    "application/json; charset=utf8",
    'application/json; charset="UTF8"',
    "application/json ; charset = utf-8 ; ",
    "application/json;",
  ])
    t.equal((await lock({}, { headers: { "content-type": type } })).status, 200, type);
});

t.test("A long content type is read once", async (t) => {
  const startedAt = process.cpuUsage();
  for (const head of ["application/json", "application/json;", "application/json;charset=utf-8"])
    t.notOk(isJson({ headers: { "content-type": `${head}${" ".repeat(100_000)}x` } } as IncomingMessage));
  // Less than a millisecond. With two ways to read each blank, ten seconds.
  t.ok(process.cpuUsage(startedAt).user < 1_000_000);
});

// A signed lock, to send with headers changed or, if undefined, left out.
async function signLock(t: Test) {
  const stub = await startStub(t);
  const body = JSON.stringify(bodies[lockPath]);
  const timestamp = String(Math.floor(Date.now() / 1000));
  const signed = { method: "POST", target: lockPath, timestamp, nonce: newNonce(), body: Buffer.from(body) };
  const headersOf = (more: object = {}) => signedHeaders({ accessKey: "ak_a", secret }, { ...signed, ...more });
  const send = (change: Record<string, string | undefined>) => {
    const headers = Object.entries({ ...json, ...headersOf(), ...change }).filter(([, value]) => value !== undefined);
    return sendPlain(stub.url, "POST", lockPath, Object.fromEntries(headers) as Record<string, string>, body);
  };
  return { ...stub, headersOf, send, signatureOf: (more: object) => headersOf(more)["x-svc-signature"]! };
}

t.test("A 401 names missing and malformed headers, the same for every key", async (t) => {
  const { url, log, lookups, headersOf, send } = await signLock(t);
  const names = Object.keys(headersOf());
  const changes: [name: string, value: string | undefined][] = [
    ...names.map((name): [string, undefined] => [name, undefined]),
    ["x-svc-nonce", "short"],
    ["x-svc-signature", headersOf()["x-svc-signature"]!.toUpperCase()],
    ["x-svc-access-key", "ak_a b"],
  ];
  for (const [name, value] of changes) {
    const texts = new Set<string>();
    for (const key of ["ak_a", "ak_nobody"]) {
      const answer = await send({ "x-svc-access-key": key, [name]: value });
      is(t, answer, 401, "UNAUTHENTICATED", `${name}: ${value}`);
      fits(t, answer.json, { request_id: "r-1", details: { issues: [{ path: name, message: /must be / }] } });
      texts.add(answer.text);
      const claimed_access_key = name === "x-svc-access-key" ? undefined : key;
      fits(t, log.at(-1), { status: 401, reason: "malformed", paths: [name], claimed_access_key });
    }
    t.equal(texts.size, 1);
  }
  const nothing = await sendPlain(url, "GET", "/v1/batches/bat_1");
  is(t, nothing, 401, "UNAUTHENTICATED", "a GET too");
  t.strictSame(
    nothing.json.details.issues.map(({ path }: { path: string }) => path),
    names,
  );
  t.strictSame(lookups, [], "no key was looked up");
});

t.test("An unknown key and a wrong signature get the same answer; only the log tells why", async (t) => {
  const { calls, log, send, signatureOf, headersOf } = await signLock(t);
  const wrong = "wrong signature";
  const changes: [reason: string, what: string, change: Record<string, string>][] = [
    ["unknown key", "an unknown key", { "x-svc-access-key": "ak_nobody" }],
    ["unknown key", "a secret in the wrong header, which must not be logged", { "x-svc-access-key": secret }],
    ["unknown key", "a code", { "x-svc-access-key": `ak_${code}` }],
    [wrong, "the wrong secret", { "x-svc-signature": "0".repeat(64) }],
    [wrong, "a wrong signature and an old timestamp", { "x-svc-timestamp": "1000000000" }],
    [wrong, "another target signed", { "x-svc-signature": signatureOf({ target: `${lockPath}?` }) }],
    [wrong, "another method signed", { "x-svc-signature": signatureOf({ method: "GET" }) }],
    [wrong, "another body signed", { "x-svc-signature": signatureOf({ body: Buffer.from("{}") }) }],
  ];
  const seen = new Set<string>();
  for (const [reason, what, change] of changes) {
    const answer = await send(change);
    is(t, answer, 401, "UNAUTHENTICATED", what);
    const { date: _, ...others } = answer.headers;
    seen.add(JSON.stringify([answer.text, others]));
    const claimed = change["x-svc-access-key"] ?? "ak_a";
    const isLogged = claimed === "ak_a" || claimed === "ak_nobody";
    fits(t, log.at(-1), { reason, access_key: undefined, claimed_access_key: isLogged ? claimed : undefined }, what);
  }
  t.equal(seen.size, 1, "the answers are equal, headers included");
  fits(t, JSON.parse(JSON.parse([...seen][0]!)[0]), { request_id: "r-1", details: null });
  t.equal(calls.length, 0);

  is(t, await send(headersOf({ timestamp: "1000000000" })), 401, "TIMESTAMP_OUT_OF_WINDOW", "an old timestamp");
  fits(t, log.at(-1), { reason: "timestamp", claimed_access_key: "ak_a" });
  t.equal((await send({})).status, 200, "the same request with its right headers is accepted");
  is(t, await send({}), 401, "NONCE_REUSED", "but not twice");
  fits(t, log.at(-1), { reason: "nonce", access_key: "ak_a", claimed_access_key: undefined });
});

t.test("A code of an unknown key version is a wrong code", async (t) => {
  const { lock } = await startStub(t);
  is(t, await lock({ coupon: `Z${code.slice(1)}` }), 422, "COUPON_CODE_INVALID", "Z");
});

// The order: each route gets requests that deserve two refusals, and answers with the one that comes first in the table
// of docs/integrate.md.

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

let world: Scenario;
// The same database, behind limits that are used up.
let limited: Scenario;
const usedNonce = newNonce();

t.before(async () => {
  world = await scenario(t, { http: true });
  const on = { address: world.address, masterKeyText: world.masterKeyText };
  const limits = { requestsPerSecond: 0.0001, requestBurst: 1 };
  limited = await scenario(t, { http: true, file: null, on, limits });
  t.equal((await limited.b.maker.get("/v1/events")).status, 200, "the only request within the limit");
  await world.b.maker.get("/v1/events", { nonce: usedNonce });
  fits(t, await world.b.maker.allocateBatch("bat_none", { request_id: "used before" }), { status: 404 });
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
      if (draft.body === null) draft.target += draft.target.includes("?") ? "&unknown=1" : "?unknown=1";
      else draft.body["unknown"] = 1;
    },
  },
  {
    code: "COUPON_CODE_INVALID",
    applies: ({ path }) => "coupon" in (bodies[path] ?? {}),
    add: (draft) => (draft.body!["coupon"] = "0000000000000000"),
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
  // No tenant of this test is a sandbox.
  { code: "NOT_A_SANDBOX", applies: ({ operation }) => operation === "close_day", add: () => {} },
  {
    code: "NOT_FOUND",
    applies: ({ operation }) =>
      !/^(pull_events|list_reconciliations|list_batches|close_day|open_portal)$/.test(operation),
    add: () => {},
  },
];

async function send(route: Route, chosen: Fault[]): Promise<string> {
  const coupon = makeCode(world.keys, "1", batchKey(world.keys, "1", Buffer.alloc(32, 9)), 1);
  const needed = route.operation === "list_redemptions" ? "?merchant=unknown" : "";
  const target = `${route.path}${needed}`.replace("{date}", "2026-01-01").replace("{kind}", "detail");
  const given = bodies[route.path];
  const draft: Draft = {
    url: world.url,
    method: route.method,
    target: target.replace(/\{\w+\}/, "unknown"),
    body: route.method === "POST" ? { ...given, ...("coupon" in given! && { coupon }) } : null,
    padding: 0,
    type: "application/json",
    secret: secretOf("ak_maker"),
    timestamp: Math.floor(Date.now() / 1000),
    nonce: newNonce(),
  };
  if (draft.body !== null && "request_id" in draft.body) draft.body["request_id"] = newRequestId();
  for (const { add } of chosen) add(draft);
  const body = Buffer.from((draft.body === null ? "" : JSON.stringify(draft.body)) + " ".repeat(draft.padding));
  const signed = { ...draft, timestamp: String(draft.timestamp), body };
  const credential = { accessKey: "ak_maker", secret: draft.secret };
  const headers = { "content-type": draft.type, ...signedHeaders(credential, signed) };
  const reply = await sendPlain(draft.url, draft.method, draft.target, headers, body);
  return reply.json?.code ?? String(reply.status);
}

for (const route of routes)
  t.test(`${route.operation}: of two refusals the first in the table is given`, async (t) => {
    const own = faults.filter(({ applies }) => applies(route));
    for (const [index, first] of own.entries()) {
      t.equal(await send(route, [first]), first.code, `${first.code} alone`);
      // The checks are made one after the other: one that comes before its neighbour comes before all that follow.
      const others = route.operation === "lock" ? own.slice(index + 1) : own.slice(index + 1, index + 2);
      for (const second of others)
        t.equal(await send(route, [first, second]), first.code, `${first.code} and ${second.code}`);
    }
  });

t.test("The faults are in the order of the table in integrate.md", async (t) => {
  const table = readFileSync("docs/integrate.md", "utf8").matchAll(/^\| \d{3} \| `([A-Z_]+)` \|/gmu);
  const codes = faults.map(({ code }) => code);
  t.strictSame(
    [...table].map(([, code]) => code!).filter((code) => codes.includes(code)),
    codes,
  );
});
