// All problems of a request are listed at once.
import t from "tap";
import { newNonce, signedHeaders } from "../../clients/typescript/src/signature.ts";
import { sendPlain, type Reply } from "../support/client.ts";
import { bodies, secret, startStub } from "../support/stub.ts";

t.test("Every problem of a request is listed: the query in its order, the idempotency-key, the fields", async (t) => {
  const { asA, asB } = await startStub(t);
  const listed = async (answer: Promise<Reply>) =>
    ((await answer).json.details.issues as { path: string; message: string }[]).map((issue) => Object.values(issue));
  t.strictSame(await listed(asB.get("/v1/events?first=1&limit=1&limit=2&limit=3&last=1&limit=0")), [
    ["first", "unknown query parameter"],
    ["limit", "duplicate query parameter"],
    ["limit", "duplicate query parameter"],
    ["last", "unknown query parameter"],
    ["limit", "duplicate query parameter"],
  ]);
  const path = "/v1/coupons/lock?x=1";
  const issues = await listed(asA.post(path, { ...bodies["/v1/coupons/lock"], merchant: 7 }, { idempotencyKey: " " }));
  t.strictSame(issues, [
    ["x", "unknown query parameter"],
    ["idempotency-key", "the header must be 1 to 128 printable characters"],
    ["merchant", "must be a string"],
  ]);
});

t.test("The name of an unknown field is shown if it looks like one, and not like a mistyped code", async (t) => {
  const { asA } = await startStub(t);
  const shown = ["a", "Z9_-", "a".repeat(15), "abcd_".repeat(8)];
  const hidden = [
    "",
    "9a",
    "_a",
    "-a",
    "a b",
    "a.b",
    "grö",
    "a".repeat(16),
    "A".repeat(16),
    "a1-".repeat(6),
    `${"abcd_".repeat(8)}e`,
  ];
  const more = Object.fromEntries([...shown, ...hidden].map((name) => [name, 1]));
  const { json } = await asA.post("/v1/coupons/lock", { ...bodies["/v1/coupons/lock"], ...more });
  t.strictSame(
    json.details.issues.map(({ path }: { path: string }) => path),
    [...shown, ...hidden.map(() => "(unknown)")],
  );
});

t.test("A request with two idempotency-keys is refused, so neither is dropped", async (t) => {
  const { asA, calls } = await startStub(t);
  // Node sends a line for each.
  const headers = { "idempotency-key": ["key 1", "key 2"] as unknown as string };
  const { status, json } = await asA.post("/v1/coupons/lock", bodies["/v1/coupons/lock"], { headers });
  const message = "the header must be 1 to 128 printable characters";
  t.strictSame([status, json.details?.issues, calls], [400, [{ path: "idempotency-key", message }], []]);
});

t.test("A GET with a body is refused", async (t) => {
  const { url, calls } = await startStub(t);
  const [target, body] = ["/v1/batches/bat_1", "{}"];
  const timestamp = String(Math.floor(Date.now() / 1000));
  const signed = { method: "GET", target, timestamp, nonce: newNonce(), body: Buffer.from(body) };
  const headers = signedHeaders({ accessKey: "ak_a", secret }, signed);
  const { status, json } = await sendPlain(url, "GET", target, headers, body);
  t.strictSame([status, json.details?.issues, calls], [400, [{ path: "(body)", message: "a GET takes no body" }], []]);
});
