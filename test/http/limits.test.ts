// The limits of a request, one step inside and one step outside. All else is valid, so nothing else refuses it.
import t from "tap";
import { sendBytes } from "../support/client.ts";
import { stopClock } from "../support/stop-clock.ts";
import { bodies, code, startStub } from "../support/stub.ts";

const long = (length: number) => "x".repeat(length);

// [path, field, longest]: texts of 1 to that many characters.
const texts: [string, string, number][] = [
  ["/v1/coupons/lock", "request_id", 128],
  ["/v1/coupons/lock", "merchant", 64],
  ["/v1/coupons/lock", "order_id", 128],
  ["/v1/coupons/confirm", "lock_request_id", 128],
  ["/v1/batches", "template", 64],
  ["/v1/batches", "distributor", 64],
  ["/v1/batches/allocate", "batch", 64],
  ["/v1/redemptions/reverse", "redemption", 64],
];

t.test("An id or text has from 1 to its longest number of characters", async (t) => {
  const { asA, asB, calls } = await startStub(t);
  for (const [path, field, longest] of texts) {
    for (const client of [asA, asB]) {
      const send = async (length: number) =>
        (await client.post(path, { ...bodies[path], [field]: long(length) })).status;
      t.strictSame(
        [await send(0), await send(1), await send(longest), await send(longest + 1)],
        [400, 200, 200, 400],
        `${path} ${field}`,
      );
    }
  }
  for (const path of ["/v1/redemptions/reverse", "/v1/coupons/void"]) {
    const send = async (length: number) => (await asA.post(path, { ...bodies[path], reason: long(length) })).status;
    t.strictSame([await send(500), await send(501)], [200, 400], `${path} reason`);
    t.equal((calls.pop()!.args["reason"] as string).length, 500);
  }
  const sku = async (length: number) => {
    const redemption_context = { items: [{ sku: long(length) }] };
    return (await asA.post("/v1/coupons/lock", { ...bodies["/v1/coupons/lock"], redemption_context })).status;
  };
  t.strictSame([await sku(0), await sku(1), await sku(128), await sku(129)], [400, 200, 200, 400], "sku");
});

t.test("A store and a terminal have at most 64 characters after trimming", async (t) => {
  const { asA, asB } = await startStub(t);
  for (const client of [asA, asB]) {
    for (const field of ["store", "terminal"]) {
      const send = async (length: number) =>
        (await client.post("/v1/coupons/lock", { ...bodies["/v1/coupons/lock"], store: "S", [field]: long(length) }))
          .status;
      t.strictSame([await send(64), await send(65)], [200, 400], field);
    }
  }
});

t.test("A body arrives in at most 1,000 pieces", async (t) => {
  const { url } = await startStub(t);
  const head = "POST /v1/coupons/lock HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n";
  const send = async (pieces: number) => {
    const body = `${"1\r\n \r\n".repeat(pieces)}0\r\n\r\n`;
    return /^HTTP\/1.1 (\d+)/.exec(
      await sendBytes(url, `${head}transfer-encoding: chunked\r\nconnection: close\r\n\r\n${body}`),
    )![1];
  };
  t.strictSame([await send(1_000), await send(1_001)], ["401", "413"]);
});

t.test("A batch has 1 to 10,000,000 coupons", async (t) => {
  const { asA } = await startStub(t);
  const send = async (total_count: number) =>
    (await asA.post("/v1/batches", { ...bodies["/v1/batches"], total_count })).status;
  t.strictSame([await send(0), await send(1), await send(10_000_000), await send(10_000_001)], [400, 200, 200, 400]);
});

t.test("A code has 16 characters", async (t) => {
  const { asA } = await startStub(t);
  const send = async (coupon: string) =>
    (await asA.post("/v1/coupons/lock", { ...bodies["/v1/coupons/lock"], coupon })).status;
  t.strictSame([await send(code.slice(1)), await send(code), await send(`${code}0`)], [400, 200, 400]);
});

t.test("A 400 lists up to 20 issues", async (t) => {
  const { asA } = await startStub(t);
  const count = async (unknown: number) => {
    const more = Object.fromEntries(Array.from({ length: unknown }, (_, index) => [`extra_${index}`, 1]));
    const { json } = await asA.post("/v1/coupons/lock", { ...bodies["/v1/coupons/lock"], ...more });
    return json.details.issues.length as number;
  };
  t.strictSame([await count(19), await count(20), await count(21)], [19, 20, 20]);
  const parameters = async (unknown: number) => {
    const query = Array.from({ length: unknown }, (_, index) => `extra_${index}=1`).join("&");
    return (await asA.get(`/v1/events?${query}`)).json.details.issues.length as number;
  };
  t.strictSame([await parameters(20), await parameters(21)], [20, 20]);
});

t.test("The 61st wrong code of a minute is refused", async (t) => {
  const { asA } = await startStub(t);
  // Each second would give one of the 60 back.
  stopClock(t);
  const wrong = `${code.slice(0, -1)}${code.endsWith("0") ? "1" : "0"}`;
  const statuses = new Map<number, number>();
  for (let sent = 1; sent <= 61; sent += 1) {
    const { status } = await asA.post("/v1/coupons/lock", { ...bodies["/v1/coupons/lock"], coupon: wrong });
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
  }
  t.strictSame(
    [...statuses],
    [
      [422, 60],
      [429, 1],
    ],
  );
});

t.test("A head has less than 16 KiB of target, names and values", async (t) => {
  const { url } = await startStub(t);
  const status = async (size: number) => {
    const others = ["/healthz", "host", "x", "connection", "close", "x"].join("").length;
    const head = `GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx: ${long(size - others)}\r\n\r\n`;
    return (await sendBytes(url, head)).slice(9, 12);
  };
  t.strictSame([await status(16_383), await status(16_384)], ["200", "431"]);
});
