// The checks before the database is asked, and their order.
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import t, { type Test } from "tap";
import { isJson } from "../../src/http/body.ts";
import { sendBytes, sendChunked, sendPlain } from "../support/client.ts";
import { fits } from "../support/fits.ts";
import { bodies, code, secret, startStub } from "../support/stub.ts";
import { waitFor } from "../support/wait-until.ts";
import { sign } from "../../clients/typescript/src/signature.ts";

const json = { "content-type": "application/json" };
const lockPath = "/v1/coupons/lock";
const lockBody = bodies[lockPath]!;
const nonce = () => randomBytes(12).toString("hex");

const is = (t: Test, answer: { status: number; json: any }, status: number, expected: string, what: string) =>
  t.strictSame([answer.status, answer.json?.code], [status, expected], what);

t.test("A body above 64 KiB is 413 before any other check, with a declared length or in chunks", async (t) => {
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
    fits(t, [answer.status, answer.text], [413, /PAYLOAD_TOO_LARGE/], `${size} in chunks`);
  }
  t.match(
    await sendBytes(
      url,
      `POST ${lockPath} HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\n` +
        "content-length: 99999\r\nconnection: close\r\n\r\n",
    ),
    /^HTTP\/1.1 413/,
    "a client that expects 100-continue gets the refusal",
  );
  t.strictSame(lookups, []);

  const fill = (size: number) => JSON.stringify({ ...lockBody, order_id: "o" }).padEnd(size, " ");
  t.equal((await asA.post(lockPath, fill(limit))).status, 200, "exactly 64 KiB");
  t.equal(calls.length, 1);
  fits(t, await sendChunked(url, lockPath, {}, [Buffer.alloc(limit, 32)]), { status: 401 }, "exactly 64 KiB in chunks");
});

t.test("A client that expects 100-continue is told to send its body, unless that is above 64 KiB", async (t) => {
  const { url } = await startStub(t);
  const { hostname, port } = new URL(url);
  const begin = (length: number) => {
    const socket = connect(Number(port), hostname);
    t.teardown(() => socket.destroy());
    socket.write(
      `POST ${lockPath} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nexpect: 100-continue\r\n` +
        `content-length: ${length}\r\nconnection: close\r\n\r\n`,
    );
    return socket;
  };
  const small = begin(64 * 1024);
  const [told] = await waitFor("the word to go on", once(small, "data"));
  t.equal(String(told), "HTTP/1.1 100 Continue\r\n\r\n");
  small.write(" ".repeat(64 * 1024));
  t.match(await waitFor("the answer", text(small)), /^HTTP\/1.1 401 /);
  t.match(await waitFor("the refusal", text(begin(64 * 1024 + 1))), /^HTTP\/1.1 413 /);
});

t.test("A content type other than JSON in UTF-8 is 415, before the signature is checked", async (t) => {
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
    "application/json;;",
    "application/json utf-8",
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
    "application/json ; charset = utf-8 ; ",
    "application/json;",
  ]) {
    t.equal((await asA.post(lockPath, lockBody, { headers: { "content-type": type } })).status, 200, type);
  }
});

t.test("A long content type is read once", (t) => {
  const startedAt = process.cpuUsage();
  for (const head of ["application/json", "application/json;", "application/json;charset=utf-8"])
    t.notOk(isJson({ headers: { "content-type": `${head}${" ".repeat(100_000)}x` } } as IncomingMessage));
  // Less than a millisecond. With two ways to read each blank, ten seconds.
  t.ok(process.cpuUsage(startedAt).user < 1_000_000);
  t.end();
});

t.test("Missing or malformed headers, an unknown key and a wrong signature get the same answer", async (t) => {
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
  t.equal(seen.size, 1, "the answers are equal, headers included");
  t.match(JSON.parse([...seen][0]!)[0], /"request_id":"r-1"/);
  t.equal(calls.length, 0);
  t.ok(
    log.every((line) => line["access_key"] === undefined),
    "the log does not name an access key without a valid signature",
  );
  t.equal(
    (await sendPlain(url, "POST", lockPath, good, body)).status,
    200,
    "the same request with its right headers is accepted",
  );
  t.equal((await asA.get("/v1/batches/bat_1")).status, 200);
  is(t, await sendPlain(url, "GET", "/v1/batches/bat_1"), 401, "UNAUTHENTICATED", "a GET too");
});

t.test("Only a validly signed request learns that its timestamp is off", async (t) => {
  const { asA, calls } = await startStub(t);
  for (const offset of [-310, 330, -100_000]) {
    const before = Date.now();
    const answer = await asA.post(lockPath, lockBody, { timestamp: String(Math.floor(Date.now() / 1000) + offset) });
    is(t, answer, 401, "TIMESTAMP_OUT_OF_WINDOW", `${offset} s`);
    const serverTime = Date.parse(answer.json.details.server_time);
    t.ok(serverTime >= before && serverTime <= Date.now());
  }
  t.equal(calls.length, 0);
  for (const offset of [-270, 270])
    t.equal(
      (await asA.post(lockPath, lockBody, { timestamp: String(Math.floor(Date.now() / 1000) + offset) })).status,
      200,
      `${offset} s`,
    );
});

t.test("A request that is refused for its body or code spends its nonce; the nonce is checked first", async (t) => {
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
});

t.test("A malformed body is reported before a wrong code", async (t) => {
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
