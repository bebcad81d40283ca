// Paths, methods and request IDs: what every request gets before its body is read.
import t, { type Test } from "tap";
import { sendBytes, sendPlain, type Reply } from "../support/client.ts";
import { sign } from "../../clients/typescript/src/signature.ts";
import { fits } from "../support/fits.ts";
import { bodies, code, secret, startStub } from "../support/stub.ts";

const json = { "content-type": "application/json" };
const lockPath = "/v1/coupons/lock";
const lockBody = bodies[lockPath]!;

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
    "/v1/coupons/./lock",
    "/v1/x/../coupons/lock",
    "/v1/coupons/l%6fck",
    "/v1/coupons%2Flock",
    "/v1/coupons/LOCK",
    "/v1/coupons/%zz",
    "/v1/batches/",
    "/v1/batches/a/b",
    "/v1/requests/",
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
  is(t, await asA.post("/v1/coupons/lock/", lockBody), 404, "ROUTE_NOT_FOUND", "signed");
  is(
    t,
    await sendPlain(url, "POST", "/nothing", {}, "x".repeat(70_000)),
    404,
    "ROUTE_NOT_FOUND",
    "a body that is too large",
  );
  t.strictSame(lookups, []);
});

t.test("A wrong method is 405, and the answer names the right one", async (t) => {
  const { url } = await startStub(t);
  const wrong: [string, string, string][] = [
    ["GET", lockPath, "POST"],
    ["PUT", lockPath, "POST"],
    ["OPTIONS", lockPath, "POST"],
    ["HEAD", lockPath, "POST"],
    ["HEAD", "http://other.example/v1/coupons/lock", "POST"],
    ["DELETE", "/v1/batches/bat_1", "GET, HEAD"],
    ["POST", "/v1/batches/bat_1", "GET, HEAD"],
    ["GET", "/v1/batches/allocate", "POST"],
    ["GET", "/v1/batches", "POST"],
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
  for (const host of ["a:99999", "1.2.3.999", "1.2.3.4.5", "[::::]", ""])
    for (const [target, status] of [
      ["/..", 404],
      ["/%41", 404],
      ["/v1/requests/a%3Ab", 401],
      ['/healthz?"', 200],
      ["http://a:99999/..", 404],
    ] as const) {
      const answer = await sendBytes(url, `GET ${target} HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`);
      t.match(answer, new RegExp(`^HTTP/1.1 ${status} `), `${target} at ${host}`);
    }
});

t.test("A target in absolute form is served as its path and query, and signed as it is sent", async (t) => {
  const { url, asA, calls } = await startStub(t);
  for (const host of ["http://any.example", "HTTPS://any.example:8443", "http://[::1]:80"]) {
    t.equal((await asA.get(`${host}/v1/events?limit=7`)).status, 200, host);
    fits(t, calls.pop(), { operation: "pull_events", args: { limit: 7 } });
    t.equal((await asA.post(`${host}${lockPath}`, lockBody)).status, 200);
    t.equal(calls.pop()!.operation, "lock");
    is(t, await asA.get(`${host}/v1/events?cursor=`), 400, "INVALID_REQUEST", "the query counts");
    t.equal((await sendPlain(url, "GET", `${host}/healthz`)).status, 200);
  }
  const target = "/v1/batches/bat_1";
  const signed = { method: "GET", target, timestamp: String(Math.floor(Date.now() / 1000)), body: Buffer.alloc(0) };
  const headersFor = (nonce: string) => ({
    "x-svc-access-key": "ak_a",
    "x-svc-timestamp": signed.timestamp,
    "x-svc-nonce": nonce,
    "x-svc-signature": sign(secret, { ...signed, nonce }),
  });
  is(
    t,
    await sendPlain(url, "GET", `http://any.example${target}`, headersFor("0123456789abcdef")),
    401,
    "UNAUTHENTICATED",
    "the path alone is signed",
  );
  t.equal((await sendPlain(url, "GET", target, headersFor("0123456789abcdef"))).status, 200);
});

t.test("The request_id in header, body and log is the caller's, or generated", async (t) => {
  const { url, asA, log } = await startStub(t);
  const check = (answer: Reply, id: string | RegExp) => {
    fits(t, [answer.headers["x-request-id"], answer.json.request_id ?? id, log.at(-1)!["request_id"]], [id, id, id]);
    t.equal(answer.headers["x-request-id"], log.at(-1)!["request_id"]);
  };
  const generated = /^req_[0-9a-z]{26}$/;
  check(await sendPlain(url, "GET", "/healthz"), generated);
  check(await sendPlain(url, "GET", "/nothing"), generated);
  check(await sendPlain(url, "POST", lockPath, json, '{"request_id":"mine"}'), "mine");
  check(await asA.post(lockPath, { request_id: "mine too" }), "mine too");
  check(await asA.post(lockPath, lockBody), "r-1");
  for (const id of [1, "", "x".repeat(129), "a\u0007", null])
    check(await asA.post(lockPath, { ...lockBody, request_id: id }), generated);
  const holding = await asA.post(lockPath, { ...lockBody, request_id: `lock-${code.toLowerCase()}` });
  check(holding, generated);
  fits(t, holding, {
    status: 400,
    json: { details: { issues: [{ path: "request_id", message: "must not contain a coupon code" }] } },
  });
  check(await asA.get("/v1/batches/bat_1"), generated);
  const answer = await asA.post(lockPath, { ...lockBody, request_id: "größe-返品" });
  t.equal(answer.headers["x-request-id"], encodeURIComponent("größe-返品"), "percent-encoded in the header");
  t.equal(log.at(-1)!["request_id"], "größe-返品");
});

t.test("Malformed HTTP gets an answer with the usual fields", async (t) => {
  const { url } = await startStub(t);
  t.match(
    await sendBytes(url, "nonsense\r\n\r\n"),
    /^HTTP\/1.1 400 [^]*x-request-id: req_[^]*"code":"INVALID_REQUEST"/,
  );
  t.match(
    await sendBytes(url, `GET /healthz HTTP/1.1\r\nhost: x\r\nx-long: ${"x".repeat(20_000)}\r\n\r\n`),
    /^HTTP\/1.1 431 [^]*"code":"PAYLOAD_TOO_LARGE"/,
  );
});
