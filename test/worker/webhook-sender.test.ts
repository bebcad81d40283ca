// Sending one webhook: what a receiver gets, and how its response becomes an outcome.
// Broken receivers are in webhook-sender-faults.test.ts.
import { execFile, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import http from "node:http";
import { createServer as createSecureServer } from "node:https";
import { syncBuiltinESMExports } from "node:module";
import { mock } from "node:test";
import { promisify } from "node:util";
import t from "tap";
import { newWebhookSecret } from "../../src/crypto/webhook-signature.ts";
import { createAddressRule } from "../../src/worker/address-rule.ts";
import { createSender, readRetryAfter, type Outcome } from "../../src/worker/webhook-sender.ts";
import { fits } from "../support/fits.ts";
import { listenOnLoopback } from "../support/listen.ts";
import { startReceiver, status, take, verify, type Receiver } from "../support/receiver.ts";

const secret = newWebhookSecret();
const body = '{"event_id":"evt_1","event_type":"batch.generated","batch_id":"bat_ü"}';
const send = createSender({ mayConnect: createAddressRule(["127.0.0.0/8"]) });
const sendTo = (url: string, secrets = [secret]) => send({ id: "evt_1", url, body, secrets }) as Promise<Outcome>;

t.test("an event is sent as one POST, with a signature that a receiver's library accepts", async (t) => {
  const receiver = await startReceiver(t);
  await sendTo(`${receiver.url}/hook/?tenant=1#part`);
  t.equal(receiver.received.length, 1);
  const [got] = receiver.received;
  fits(t, got, { path: "/hook/?tenant=1", id: "evt_1", body });
  fits(t, got!.headers, {
    host: `127.0.0.1:${receiver.port}`,
    "content-type": "application/json",
    "user-agent": "coupon-service",
    connection: "close",
  });
  t.strictSame(Object.keys(got!.headers).sort(), [
    "connection",
    "content-length",
    "content-type",
    "host",
    "user-agent",
    "webhook-id",
    "webhook-signature",
    "webhook-timestamp",
  ]);
  t.strictSame(verify(secret, got!), JSON.parse(body));
  t.throws(() => verify(newWebhookSecret(), got!), "with another secret");
  t.throws(() => verify(secret, { ...got!, body: body.replace("1", "2") }), "with another body");
});

t.test("each address of a receiver has two seconds to accept the connection", async (t) => {
  const receiver = await startReceiver(t);
  const { mock: requests } = mock.method(http, "request");
  syncBuiltinESMExports();
  t.teardown(() => {
    requests.restore();
    syncBuiltinESMExports();
  });
  await sendTo(receiver.url);
  fits(
    t,
    requests.calls.map(({ arguments: [options] }) => options),
    [{ autoSelectFamilyAttemptTimeout: 2_000, agent: false }],
  );
});

t.test("with two secrets, a receiver can verify with either", async (t) => {
  const receiver = await startReceiver(t);
  const before = newWebhookSecret();
  await sendTo(receiver.url, [secret, before]);
  const [got] = receiver.received;
  verify(secret, got!);
  verify(before, got!);
  t.match(got!.headers["webhook-signature"], /^v1,[A-Za-z0-9+/]{43}= v1,[A-Za-z0-9+/]{43}=$/);
  t.throws(() => verify(newWebhookSecret(), got!));
});

t.test("the status of the response is the outcome", async (t) => {
  // The clock stands still, so a date is not nearer when it is read.
  const now = Date.UTC(2026, 10, 20, 21, 20, 3);
  const clock = mock.method(Date, "now", () => now);
  t.teardown(() => clock.mock.restore());
  const inside = await startReceiver(t);
  const redirect = (code: number) => status(code, { location: `http://10.0.0.1:${inside.port}/`, refresh: "0" });
  const rows: [string, Receiver["answer"], Partial<Outcome>][] = [
    ["200", status(200), { httpStatus: 200, error: null, retryAfterSeconds: null }],
    ["204", take, { httpStatus: 204, error: null }],
    ["200 with Retry-After", status(200, { "retry-after": "60" }), { httpStatus: 200, retryAfterSeconds: null }],
    ["300 with Retry-After", status(300, { "retry-after": "60" }), { httpStatus: 300, retryAfterSeconds: 60 }],
    ["301 to a private address", redirect(301), { httpStatus: 301, error: null }],
    [
      "302 to an allowed address",
      (response) => void response.writeHead(302, { location: inside.url }).end(),
      { httpStatus: 302, error: null },
    ],
    ["307", redirect(307), { httpStatus: 307 }],
    ["404", status(404), { httpStatus: 404, error: null, retryAfterSeconds: null }],
    ["410", status(410), { httpStatus: 410, error: null }],
    ["429 with seconds", status(429, { "retry-after": "120" }), { httpStatus: 429, retryAfterSeconds: 120 }],
    [
      "429 with a date",
      (response) => void response.writeHead(429, { "retry-after": new Date(now + 90_000).toUTCString() }).end(),
      { httpStatus: 429, retryAfterSeconds: 90 },
    ],
    ["429 with years", status(429, { "retry-after": "99999999" }), { httpStatus: 429, retryAfterSeconds: 86_400 }],
    ["503 without Retry-After", status(503), { httpStatus: 503, retryAfterSeconds: null }],
    ["500", status(500), { httpStatus: 500, error: null }],
  ];
  const receiver = await startReceiver(t);
  for (const [name, answer, expected] of rows) {
    receiver.answer = answer;
    fits(t, await sendTo(receiver.url), expected, name);
  }
  t.equal(receiver.connections, rows.length, "one connection per webhook");
  t.equal(inside.connections, 0, "no redirect was followed");
});

t.test("https: only a receiver with a trusted certificate gets the event", async (t) => {
  const folder = t.testdir({});
  const [key, certificate] = [`${folder}/key.pem`, `${folder}/certificate.pem`];
  const made = spawnSync("openssl", [
    ..."req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2".split(" "),
    ..."-subj /CN=receiver.test -addext subjectAltName=DNS:receiver.test".split(" "),
    "-keyout",
    key,
    "-out",
    certificate,
  ]);
  if (made.status !== 0) return void t.pass("not tried", { skip: "no openssl to make a certificate" });
  const ids: unknown[] = [];
  const server = createSecureServer(
    { key: readFileSync(key), cert: readFileSync(certificate) },
    (request, response) => {
      ids.push(request.headers["webhook-id"]);
      response.writeHead(200).end();
    },
  );
  const port = await listenOnLoopback(server);
  t.teardown(() => new Promise<void>((resolve) => server.close(() => resolve())));
  // A process reads its trusted certificates when it starts.
  const sendFrom = async (env: Record<string, string>, host: string) => {
    const script = `
      import { createAddressRule } from "./src/worker/address-rule.ts";
      import { createSender } from "./src/worker/webhook-sender.ts";
      const send = createSender({ mayConnect: createAddressRule(["127.0.0.0/8"]), resolve: async () => ["127.0.0.1"] });
      const webhook = { id: "evt_1", url: "https://${host}:${port}/", body: "{}", secrets: ["${secret}"] };
      console.log(JSON.stringify(await send(webhook)));`;
    const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module-typescript", "-e", script], {
      env,
    });
    return JSON.parse(stdout) as Outcome;
  };
  fits(t, await sendFrom({}, "receiver.test"), { httpStatus: null, error: /self-signed certificate/ });
  fits(t, await sendFrom({ NODE_EXTRA_CA_CERTS: certificate }, "other.test"), {
    httpStatus: null,
    error: /Hostname\/IP does not match/,
  });
  t.equal(ids.length, 0);
  fits(t, await sendFrom({ NODE_EXTRA_CA_CERTS: certificate }, "receiver.test"), { httpStatus: 200, error: null });
  t.strictSame(ids, ["evt_1"]);
});

t.test(
  "Retry-After is seconds or a date in one of HTTP's forms, capped at a day; anything else is ignored",
  async (t) => {
    const now = Date.UTC(2026, 10, 20, 21, 20, 3);
    const rows: [string | undefined, number | null][] = [
      ["1", 1],
      ["86400", 86_400],
      ["86401", 86_400],
      ["9".repeat(400), 86_400],
      ["0", null],
      ["-5", null],
      ["1.5", null],
      ["1e3", null],
      ["soon", null],
      ["", null],
      [undefined, null],
      ["Fri, 20 Nov 2026 21:20:13 GMT", 10],
      ["Friday, 20-Nov-26 21:21:03 GMT", 60],
      ["Fri Nov 20 21:20:05 2026", 2],
      ["Fri, 20 Nov 2026 21:20:03 GMT", null],
      ["Fri, 20 Nov 2020 21:20:03 GMT", null],
      ["Fri, 20 Nov 2099 21:20:03 GMT", 86_400],
      ["Fri, 99 Nov 2026 21:20:03 GMT", null],
      ["2026-11-20T21:20:13Z", null],
      ["tomorrow 1", null],
    ];
    for (const [text, seconds] of rows) t.equal(readRetryAfter(text, now), seconds, String(text).slice(0, 40));
  },
);
