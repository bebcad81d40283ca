// What is decided before the database is asked, and in which order.
import { randomBytes } from "node:crypto";
import t, { type Test } from "tap";
import { sendBytes, sendChunked, sendPlain, type Reply } from "../support/client.ts";
import { bodies, code, secret, startStub } from "../support/stub.ts";
import { sign } from "../../src/crypto/request-signature.ts";

const json = { "content-type": "application/json" };
const lockPath = "/v1/coupons/lock";
const lockBody = bodies[lockPath]!;
const nonce = () => randomBytes(12).toString("hex");

const is = (t: Test, answer: { status: number; json: any }, status: number, expected: string, what: string) =>
  t.strictSame([answer.status, answer.json?.code], [status, expected], what);

t.test("what is no route is 404, whoever asks and whatever comes with it", async (t) => {
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
    "http://other.example/v1/coupons/lock",
    "//v1/coupons/lock",
  ];
  for (const path of paths) {
    for (const method of ["GET", "POST"])
      is(t, await sendPlain(url, method, path), 404, "ROUTE_NOT_FOUND", `${method} ${path}`);
  }
  is(t, await asA.post("/v1/coupons/lock/", lockBody), 404, "ROUTE_NOT_FOUND", "signed too");
  is(t, await sendPlain(url, "POST", "/nothing", {}, "x".repeat(70_000)), 404, "ROUTE_NOT_FOUND", "before the size");
  t.strictSame(lookups, []);
});

t.test("another method than the route's is 405 and names the right one", async (t) => {
  const { url } = await startStub(t);
  const wrong: [string, string, string][] = [
    ["GET", lockPath, "POST"],
    ["PUT", lockPath, "POST"],
    ["OPTIONS", lockPath, "POST"],
    ["HEAD", lockPath, "POST"],
    ["DELETE", "/v1/batches/bat_1", "GET"],
    ["POST", "/v1/batches/bat_1", "GET"],
    ["HEAD", "/v1/batches/bat_1", "GET"],
    ["GET", "/v1/batches/allocate", "POST"],
    ["GET", "/v1/batches", "POST"],
    ["POST", "/healthz", "GET"],
  ];
  for (const [method, path, allow] of wrong) {
    const answer = await sendPlain(url, method, path);
    t.strictSame([answer.status, answer.headers["allow"]], [405, allow], `${method} ${path}`);
    if (method !== "HEAD") t.equal(answer.json.code, "METHOD_NOT_ALLOWED");
    else t.equal(answer.text, "");
  }
});

t.test("more than 64 KiB is 413 before anything else is looked at, declared or in chunks", async (t) => {
  const { url, asA, calls, lookups } = await startStub(t);
  const limit = 64 * 1024;
  is(
    t,
    await sendPlain(url, "POST", lockPath, { "content-type": "text/plain" }, "x".repeat(limit + 1)),
    413,
    "PAYLOAD_TOO_LARGE",
    "declared",
  );
  is(t, await asA.post(lockPath, "x".repeat(limit + 1)), 413, "PAYLOAD_TOO_LARGE", "signed");
  for (const size of [limit + 1, 3_000_000]) {
    const chunk = Buffer.alloc(1000, 120);
    const chunks = Array.from({ length: Math.ceil(size / 1000) }, () => chunk);
    const answer = await sendChunked(url, lockPath, {}, chunks);
    t.match([answer.status, answer.text], [413, /PAYLOAD_TOO_LARGE/], `${size} in chunks`);
  }
  t.match(
    await sendBytes(
      url,
      `POST ${lockPath} HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 99999\r\nconnection: close\r\n\r\n`,
    ),
    /^HTTP\/1.1 413/,
    "who asks before sending is told no",
  );
  t.strictSame(lookups, []);

  const fill = (size: number) => JSON.stringify({ ...lockBody, order_id: "o" }).padEnd(size, " ");
  t.equal((await asA.post(lockPath, fill(limit))).status, 200, "exactly 64 KiB");
  t.equal(calls.length, 1);
  t.match(
    await sendChunked(url, lockPath, {}, [Buffer.alloc(limit, 32)]),
    { status: 401 },
    "exactly 64 KiB in chunks is read",
  );
});

t.test("another content type than JSON in UTF-8 is 415, before the signature", async (t) => {
  const { url, asA, lookups } = await startStub(t);
  const types = [
    "",
    "text/plain",
    "application/x-www-form-urlencoded",
    "application/problem+json",
    "application/jsonp",
    "application/json; charset=latin1",
    "application/json, text/plain",
    "application/json; charset=utf-8; x=y",
  ];
  for (const type of types)
    is(
      t,
      await sendPlain(url, "POST", lockPath, type === "" ? {} : { "content-type": type }, "{}"),
      415,
      "UNSUPPORTED_MEDIA_TYPE",
      type,
    );
  is(
    t,
    await sendPlain(url, "POST", lockPath, { ...json, "content-encoding": "gzip" }, "{}"),
    415,
    "UNSUPPORTED_MEDIA_TYPE",
    "compressed",
  );
  t.strictSame(lookups, []);
  for (const type of [
    "application/json",
    "Application/JSON",
    "application/json;charset=UTF-8",
    'application/json; charset="utf-8"',
  ]) {
    t.equal((await asA.post(lockPath, lockBody, { headers: { "content-type": type } })).status, 200, type);
  }
});

t.test("missing or malformed headers, an unknown key and a wrong signature are one and the same answer", async (t) => {
  const { url, asA, calls, log } = await startStub(t);
  const body = JSON.stringify(lockBody);
  const signed = {
    method: "POST",
    target: lockPath,
    timestamp: String(Math.floor(Date.now() / 1000)),
    nonce: nonce(),
    body: Buffer.from(body),
  };
  const good: Record<string, string> = {
    ...json,
    "x-svc-access-key": "ak_a",
    "x-svc-timestamp": signed.timestamp,
    "x-svc-nonce": signed.nonce,
    "x-svc-signature": sign(secret, signed),
  };
  const old = { ...signed, timestamp: "1000000000" };
  const without = (name: string) => Object.fromEntries(Object.entries(good).filter(([key]) => key !== name));
  const tries: [string, Record<string, string>][] = [
    ["no headers at all", json],
    ...["x-svc-access-key", "x-svc-timestamp", "x-svc-nonce", "x-svc-signature"].map(
      (name): [string, Record<string, string>] => [`no ${name}`, without(name)],
    ),
    ["a short nonce", { ...good, "x-svc-nonce": "short" }],
    ["an upper-case signature", { ...good, "x-svc-signature": good["x-svc-signature"]!.toUpperCase() }],
    ["an unknown key", { ...good, "x-svc-access-key": "ak_nobody" }],
    ["another credential's key with the wrong secret", { ...good, "x-svc-signature": sign(`${secret}x`, signed) }],
    ["a wrong signature and an old timestamp", { ...good, "x-svc-timestamp": old.timestamp }],
    ["another target signed", { ...good, "x-svc-signature": sign(secret, { ...signed, target: `${lockPath}?` }) }],
    ["another method signed", { ...good, "x-svc-signature": sign(secret, { ...signed, method: "GET" }) }],
    ["another body signed", { ...good, "x-svc-signature": sign(secret, { ...signed, body: Buffer.from("{}") }) }],
  ];
  const seen = new Set<string>();
  for (const [what, headers] of tries) {
    const answer = await sendPlain(url, "POST", lockPath, headers, body);
    is(t, answer, 401, "UNAUTHENTICATED", what);
    const { date: _, ...others } = answer.headers;
    seen.add(JSON.stringify([answer.text, others]));
  }
  t.equal(seen.size, 1, "down to the last header, as the request_id is the caller's");
  t.match(JSON.parse([...seen][0]!)[0], /"request_id":"r-1"/);
  t.equal(calls.length, 0);
  t.ok(
    log.every((line) => line["access_key"] === undefined),
    "what nobody signed for is not in the log",
  );
  t.equal(
    (await sendPlain(url, "POST", lockPath, good, body)).status,
    200,
    "and the same headers, unspoiled, are accepted",
  );
  t.equal((await asA.get("/v1/batches/bat_1")).status, 200);
  is(t, await sendPlain(url, "GET", "/v1/batches/bat_1"), 401, "UNAUTHENTICATED", "a GET too");
});

t.test("only a good signature learns that its time is off", async (t) => {
  const { asA, calls } = await startStub(t);
  for (const offset of [-310, 310, -100_000]) {
    const answer = await asA.post(lockPath, lockBody, { timestamp: String(Math.floor(Date.now() / 1000) + offset) });
    is(t, answer, 401, "TIMESTAMP_OUT_OF_WINDOW", `${offset} s`);
    t.ok(Math.abs(Date.parse(answer.json.details.server_time) - Date.now()) < 5_000);
  }
  t.equal(calls.length, 0);
  for (const offset of [-295, 295])
    t.equal(
      (await asA.post(lockPath, lockBody, { timestamp: String(Math.floor(Date.now() / 1000) + offset) })).status,
      200,
      `${offset} s`,
    );
});

t.test(
  "a nonce is spent by a request that is then refused for its body or its code, and is decided first",
  async (t) => {
    const { asA, calls } = await startStub(t);
    for (const [body, status, expected] of [
      [{}, 400, "INVALID_REQUEST"],
      [{ ...lockBody, coupon: "0000000000000000" }, 422, "COUPON_CODE_INVALID"],
    ] as const) {
      const used = nonce();
      is(t, await asA.post(lockPath, body, { nonce: used }), status, expected, "first");
      is(t, await asA.post(lockPath, body, { nonce: used }), 401, "NONCE_REUSED", "again");
      is(t, await asA.post(lockPath, lockBody, { nonce: used }), 401, "NONCE_REUSED", "with a good body");
    }
    t.equal(calls.length, 0);
  },
);

t.test("a wrong shape is told before a wrong code", async (t) => {
  const { asA } = await startStub(t);
  is(
    t,
    await asA.post(lockPath, { ...lockBody, coupon: "0000000000000000", extra: 1 }),
    400,
    "INVALID_REQUEST",
    "both wrong",
  );
  is(
    t,
    await asA.post(lockPath, { ...lockBody, coupon: `Z${code.slice(1)}` }),
    422,
    "COUPON_CODE_INVALID",
    "unknown key version",
  );
});

t.test("the request_id of an answer is the caller's, or generated and the same in header, body and log", async (t) => {
  const { url, asA, log } = await startStub(t);
  const check = (answer: Reply, id: string | RegExp) => {
    t.match([answer.headers["x-request-id"], answer.json.request_id ?? id, log.at(-1)!["request_id"]], [id, id, id]);
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
  t.match(holding, {
    status: 400,
    json: { details: { issues: [{ path: "request_id", message: "must not hold the coupon's code" }] } },
  });
  check(await asA.get("/v1/batches/bat_1"), generated);
  const answer = await asA.post(lockPath, { ...lockBody, request_id: "größe-返品" });
  t.equal(answer.headers["x-request-id"], encodeURIComponent("größe-返品"), "percent-encoded in the header");
  t.equal(log.at(-1)!["request_id"], "größe-返品");
});

t.test("what is not HTTP gets an answer of the usual shape", async (t) => {
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
