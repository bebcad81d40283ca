// Which requests are recorded, and how a caller that lost its answer learns the outcome.
import t from "tap";
import { sendPatiently, sendPlain, type Client, type Reply } from "../../support/client.ts";
import { fits } from "../../support/fits.ts";
import { isReplay, readEverything } from "../../support/replays.ts";
import { newRequestId, startService, type Running } from "../../support/service.ts";
import { beginRequest, holdCoupon } from "../../support/sessions.ts";
import { untilBlocked } from "../../support/race.ts";

const redeemPath = "/v1/coupons/redeem";
let service: Running;
let a: Client;
t.before(async () => {
  service = await startService(t);
  a = service.as("ak_a");
});

const makeCoupons = async (count: number) => (await service.makeBatch(a, "tpl_fixed", count)).codes;
const everything = () => readEverything(service);

t.test("A request that is refused before it is decided is not recorded, and its ID stays free", async (t) => {
  const codes = await makeCoupons(12);
  const huge = "x".repeat(70_000);
  const wrongTag = (code: string) => code.slice(0, 15) + (code.endsWith("0") ? "1" : "0");
  type Body = { request_id: string; coupon: string; merchant: string };
  const attempts: [string, number, (body: Body) => Promise<Reply>][] = [
    ["400: unknown field", 400, (body) => a.post(redeemPath, { ...body, extra: 1 })],
    ["400: not JSON", 400, (body) => a.post(redeemPath, `${JSON.stringify(body)}}`)],
    ["400: no code", 400, (body) => a.post(redeemPath, { ...body, coupon: "ABC" })],
    ["400: more decimals than the currency", 400, (body) => a.post(redeemPath, { ...body, order_amount: 1.001 })],
    ["400: bad idempotency-key", 400, (body) => a.post(redeemPath, body, { idempotencyKey: "x".repeat(129) })],
    ["401: signature", 401, (body) => a.post(redeemPath, body, { headers: { "x-svc-signature": "0".repeat(64) } })],
    [
      "401: timestamp",
      401,
      (body) => a.post(redeemPath, body, { timestamp: String(Math.floor(Date.now() / 1000) - 301) }),
    ],
    [
      "401: unsigned",
      401,
      (body) =>
        sendPlain(service.url, "POST", redeemPath, { "content-type": "application/json" }, JSON.stringify(body)),
    ],
    ["404: route", 404, (body) => a.post("/v1/coupons/redeeem", body)],
    ["405: method", 405, () => a.get(redeemPath)],
    ["413", 413, (body) => a.post(redeemPath, JSON.stringify({ ...body, order_id: huge }))],
    ["415", 415, (body) => a.post(redeemPath, body, { headers: { "content-type": "text/plain" } })],
    ["422: COUPON_CODE_INVALID", 422, (body) => a.post(redeemPath, { ...body, coupon: wrongTag(body.coupon) })],
  ];
  codes.push(...(await makeCoupons(attempts.length - codes.length)));
  for (const [name, status, attempt] of attempts) {
    const body = { request_id: newRequestId(), coupon: codes.pop()!, merchant: "mch_a" };
    const before = await everything();
    t.equal((await attempt(body)).status, status, name);
    t.strictSame(await everything(), before, `${name}: nothing changes`);
    t.equal((await a.get(`/v1/requests/${body.request_id}`)).status, 404, `${name}: no record`);
    const decided = await a.post(redeemPath, body);
    t.ok(decided.status === 200 && !isReplay(decided), `${name}: the same ID works afterwards`);
  }
});

t.test("A repeated request waits for the first one, for at most 2 s", async (t) => {
  const bodies = (await makeCoupons(3)).map((coupon) => ({ request_id: newRequestId(), coupon, merchant: "mch_a" }));
  const begin = (body: (typeof bodies)[number]) => beginRequest(service, "ak_a", "redeem", body);
  // The answer to the second request, which waited for the first one. A busy machine may let it wait for too long.
  const answerAfter = async (body: (typeof bodies)[number], how: "commit" | "rollback") => {
    const end = await begin(body);
    const answer = sendPatiently(() => a.post(redeemPath, body));
    await untilBlocked(service, 1);
    await end(how);
    return answer;
  };
  const replayed = { status: 200, headers: { "idempotent-replayed": "true" } };
  fits(t, await answerAfter(bodies[0]!, "commit"), replayed, "the answer of the first");
  const performed = await answerAfter(bodies[1]!, "rollback");
  t.ok(performed.status === 200 && !isReplay(performed), "the first was rolled back, so the second runs");
  const end = await begin(bodies[2]!);
  const refused = await sendPatiently(() => a.post(redeemPath, bodies[2]!), ["UNAVAILABLE"]);
  fits(t, refused, { status: 409, json: { code: "REQUEST_IN_PROGRESS" } });
  // Only now: the answer came while the first request was still running.
  await end("commit");
  fits(
    t,
    await a.post(redeemPath, bodies[2]!),
    replayed,
    "REQUEST_IN_PROGRESS is not recorded, so a retry gets the answer",
  );
});

t.test("A request that got 503 before it ran can be retried with the same request_id", async (t) => {
  const { codes, couponIds } = await service.makeBatch(a, "tpl_fixed", 1);
  const body = { request_id: newRequestId(), coupon: codes[0], merchant: "mch_a" };
  const release = await holdCoupon(service, couponIds[0]!);
  const before = await everything();
  fits(t, await a.post(redeemPath, body), {
    status: 503,
    json: { code: "UNAVAILABLE", request_id: body.request_id },
    headers: { "retry-after": /^\d+$/ },
  });
  t.strictSame(await everything(), before);
  await release();
  const retry = await a.post(redeemPath, body);
  t.ok(retry.status === 200 && !isReplay(retry));
});

t.test("get_request returns the outcome of a request, whatever characters its ID has", async (t) => {
  const [code] = await makeCoupons(1);
  const request_id = `${newRequestId()} ä/ö?#%2F "\\😀`;
  const target = `/v1/requests/${encodeURIComponent(request_id)}`;
  fits(t, await a.get(target), { status: 404, json: { code: "NOT_FOUND", details: { resource: "request" } } });
  for (const [id, body] of [
    [request_id, { coupon: code, merchant: "mch_a" }],
    [newRequestId(), { coupon: code, merchant: "mch_none" }],
  ] as const) {
    const first = await a.post(redeemPath, { request_id: id, ...body });
    const { status, text, json } = await a.get(`/v1/requests/${encodeURIComponent(id)}`);
    t.equal(status, 200);
    t.ok(text.includes(`"response":${first.text}`), "the answer, byte for byte");
    fits(t, json, {
      ok: true,
      request: {
        request_id: id,
        operation: "redeem",
        http_status: first.status,
        recorded_at: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/,
      },
    });
    t.strictSame(Object.keys(json.request), ["request_id", "operation", "http_status", "response", "recorded_at"]);
  }
});

t.test("The recorded answer and the effect are written in one transaction", async (t) => {
  const [code] = await makeCoupons(1);
  const request_id = newRequestId();
  await a.post(redeemPath, { request_id, coupon: code, merchant: "mch_a" });
  const written = await service.owner.rows(
    `select distinct x::text from core.request q
     join core.redemption r on r.tenant_id = q.tenant_id and r.lock_request_id = q.request_id
     join core.coupon c on (c.tenant_id, c.coupon_id) = (r.tenant_id, r.coupon_id)
     join core.ledger_entry l on (l.tenant_id, l.entry_id) = (r.tenant_id, r.redemption_id)
     cross join unnest(array[q.xmin, r.xmin, c.xmin, l.xmin]) x
     where q.request_id = $1`,
    [request_id],
  );
  t.equal(written.length, 1);
});
