// A code may be sent in the field `coupon` only. In any other text of any operation it is 400, and it is repeated
// nowhere: not in a header, a body or the log, and nothing reaches the database.
import t, { type Test } from "tap";
import { refuseCodesInArguments } from "../../src/commands/refuse-codes-in-arguments.ts";
import { containsCode } from "../../src/crypto/find-code.ts";
import { routes } from "../../src/http/routes/table.ts";
import { sendPlain, type Reply } from "../support/client.ts";
import { fits } from "../support/fits.ts";
import { searchFor } from "../support/search.ts";
import { spellings } from "../support/spellings.ts";
import { bodies, code, keys, lockPath, startStub, type Stub } from "../support/stub.ts";

const texts = spellings(code);
const search = searchFor([code]);
const generated = /^req_[0-9a-z]{26}$/;

type World = Stub & { stored: unknown[] };

async function start(t: Test): Promise<World> {
  const stored: unknown[] = [];
  const stub = await startStub(t, {
    async spendNonce(_, call) {
      stored.push(call);
      return null;
    },
  });
  return { ...stub, stored };
}

// Looks at everything that left the service, and forgets it.
function checkRefused(t: Test, world: World, reply: Reply, path: string | RegExp, what: string): void {
  const { status, json, headers, text } = reply;
  const lines = world.log.splice(0);
  const isRight =
    status === 400 &&
    json.code === "INVALID_REQUEST" &&
    json.details.issues[0].message === "must not contain a coupon code" &&
    (typeof path === "string" ? json.details.issues[0].path === path : path.test(json.details.issues[0].path)) &&
    headers["x-request-id"] === json.request_id &&
    lines.length === 1 &&
    lines[0]!["request_id"] === json.request_id;
  if (!isRight) t.fail(`${what}: ${status} ${text}`);
  const left = [text, headers, lines, world.calls.splice(0), world.stored.splice(0)];
  if (left.some((each) => hasCode(typeof each === "string" ? each : JSON.stringify(each))))
    t.fail(`${what}: the code is repeated`);
}

// Finds a code in any spelling: the letters and digits only, as a code has them.
const hasCode = (text: string): boolean => {
  const read = text.normalize("NFKD").toUpperCase().replaceAll("O", "0").replace(/[IL]/g, "1");
  return search(Buffer.from(read.replace(/[^0-9A-Z]/g, ""))).length > 0;
};

t.test("A code is refused in every field of every operation, known or not, and in the name of a field", async (t) => {
  const world = await start(t);
  let count = 0;
  for (const [variant, by] of [
    ["A", world.asA],
    ["B", world.asB],
  ] as const) {
    for (const [path, body] of Object.entries(bodies)) {
      const { schema } = routes.find((route) => route.path === path)!;
      const { coupon: _, ...fields } = (schema(variant) as unknown as { shape: object & { coupon?: unknown } }).shape;
      for (const field of [...Object.keys(fields), "more"]) {
        // Every text in the fields of one operation.
        for (const text of path === lockPath ? texts : [code, `code ${code.toLowerCase()} of Mr Müller`]) {
          const reply = await by.post(path, { ...body, [field]: text });
          checkRefused(t, world, reply, field, `${variant} ${path} ${field}`);
          if (field === "request_id" && !generated.test(reply.json.request_id)) t.fail("the request_id is repeated");
          count += 1;
        }
      }
      checkRefused(t, world, await by.post(path, { ...body, [code]: 1 }), "(unknown)", `${path} name`);
    }
  }
  t.ok(count > 400, `${count} requests`);
});

t.test("A code is refused at any depth of redemption_context", async (t) => {
  const world = await start(t);
  const refuse = async (redemption_context: unknown, path: string) =>
    checkRefused(t, world, await world.lock({ redemption_context }), `redemption_context.${path}`, path);
  for (const text of texts) {
    await refuse({ items: [{ sku: "A1" }, { sku: text }] }, "items.1.sku");
    await refuse({ items: [{ sku: "A1", amount: 1 }], note: text }, "note");
    await refuse({ a: [{ b: [text] }] }, "a.0.b.0");
    await refuse({ a: { [text]: 1 } }, "a.(unknown)");
  }
});

t.test("A code is refused in idempotency-key, nonce, path and query", async (t) => {
  const world = await start(t);
  const { asA, lock } = world;
  for (const text of texts) {
    const idempotencyKey = Buffer.from(text).toString("latin1");
    checkRefused(t, world, await lock({}, { idempotencyKey }), "idempotency-key", "idempotency-key");

    const inPath = encodeURIComponent(text);
    checkRefused(t, world, await asA.get(`/v1/batches/${inPath}`), "batch", "a batch");
    checkRefused(t, world, await asA.get(`/v1/requests/${inPath}`), "request_id", "a request");
    checkRefused(t, world, await asA.get(`/v1/reconciliations/${inPath}/detail`), "date", "a date");
    checkRefused(t, world, await asA.get(`/v1/reconciliations/2026-01-31/${inPath}`), "kind", "a kind");
    for (const target of [
      "/v1/events?limit=1&cursor=",
      "/v1/reconciliations?cursor=",
      "/v1/reconciliations/2026-01-31/detail?distributor=",
    ])
      checkRefused(t, world, await asA.get(target + inPath), /^(cursor|distributor)$/, target);
    checkRefused(t, world, await asA.get(`/v1/events?limit=${inPath}&limit=1`), "limit", "the first of two");
    checkRefused(t, world, await asA.get(`/v1/events?${inPath}=1`), "(unknown)", "the name of a parameter");
    checkRefused(t, world, await asA.post(`${lockPath}?x=${inPath}`, bodies[lockPath]), "x", "the query of a POST");
  }
  const nonces = texts.filter((text) => /^[A-Za-z0-9_-]{16,64}$/.test(text));
  t.ok(nonces.length >= 5);
  for (const nonce of nonces)
    checkRefused(t, world, await asA.get("/v1/batches/bat_1", { nonce }), "x-svc-nonce", "a nonce");
});

t.test(
  "A code is not repeated from a raw path or from a request that is refused for another reason before",
  async (t) => {
    const world = await start(t);
    checkRefused(t, world, await world.asA.get(`/v1/batches/${code}%`), "batch", "a malformed escape");
    const json = { "content-type": "application/json" };
    const refused: [Promise<Reply>, number][] = [
      [sendPlain(world.url, "POST", lockPath, json, JSON.stringify({ request_id: `r ${code}` })), 401],
      [sendPlain(world.url, "POST", lockPath, {}, JSON.stringify({ request_id: code })), 415],
      [world.asA.get(`/v1/coupons/${code}`), 404],
      [world.asA.post(lockPath, `{"request_id":"${code}"`), 400],
    ];
    for (const [reply, status] of refused) {
      const { text, headers, json: body, status: given } = await reply;
      t.equal(given, status);
      fits(t, body.request_id, generated);
      t.notOk(hasCode(text + JSON.stringify(headers) + JSON.stringify(world.log)));
    }
  },
);

t.test("An ID that the service made is never taken for a code", async (t) => {
  const { asA, lock, calls } = await start(t);
  // Found by half a million tries: with the keys of the stub, its last letters look like a code.
  const uuid = "01kdve561fem2t2sh71jpyfqxh";
  t.ok(containsCode(keys, uuid));
  const [batch, redemption] = [`bat_${uuid}`, `red_${uuid}`];
  t.equal((await asA.post("/v1/batches/allocate", { request_id: "r-1", batch })).status, 200);
  t.equal((await asA.post("/v1/redemptions/reverse", { request_id: "r-2", redemption })).status, 200);
  t.equal((await asA.get(`/v1/batches/${batch}`)).status, 200);
  t.equal((await asA.post("/v1/webhook/replay", { request_id: "r-3", event_id: `evt_${uuid}` })).status, 200);
  t.equal(calls.length, 4);
  fits(
    t,
    await lock({ order_id: batch }, { idempotencyKey: batch }),
    { json: { details: { issues: [{ path: "order_id" }, { path: "idempotency-key" }] } } },
    "a text that is stored is searched, even if it looks like an ID",
  );
  for (const field of [`bat_${uuid}`, uuid, `red_${uuid}x`, `red_7${uuid.slice(1)}`])
    t.equal((await asA.post("/v1/redemptions/reverse", { request_id: "r-4", redemption: field })).status, 400, field);
  t.doesNotThrow(() => refuseCodesInArguments(keys, [batch, `evt_${uuid}`]));
  t.throws(() => refuseCodesInArguments(keys, [batch, uuid]), { message: /^an argument contains a coupon code/ });
});
