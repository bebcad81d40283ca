// verifyWebhook of the TypeScript client: it accepts what the service signs, and nothing else.
import t from "tap";
import { verifyWebhook, WebhookError } from "../../clients/typescript/src/index.ts";
import { newWebhookSecret, signWebhook } from "../../src/crypto/webhook-signature.ts";

// The example of docs/webhooks.md.
const secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
const body =
  '{"event_id":"evt_01m812943dej3sxxapn959hh12","event_type":"batch.generated",' +
  '"batch_id":"bat_01m8129308eaza9j4hw9x4eamx","occurred_at":"2026-11-22T07:24:40.497Z"}';
const headers = {
  "webhook-id": "evt_01m812943dej3sxxapn959hh12",
  "webhook-timestamp": "1781985600",
  "webhook-signature": "v1,t0fKk/DqYTtls54lOrBpABCkpUF0Ey3le3akrcZ9ybI=",
};
const at = { now: 1781985600_000 };

t.test("The documented example is accepted, as text, as bytes, and with the headers of fetch", (t) => {
  const expected = { id: "evt_01m812943dej3sxxapn959hh12", isTest: false, event: JSON.parse(body) as unknown };
  t.strictSame(verifyWebhook({ secret, headers, body, ...at }), expected);
  t.strictSame(verifyWebhook({ secret, headers, body: Buffer.from(body), ...at }), expected);
  const { event } = verifyWebhook({ secret, headers: new Headers(headers), body, ...at });
  // Compiles because the type of an event gives it its fields.
  t.equal(event.event_type === "batch.generated" ? event.batch_id : null, "bat_01m8129308eaza9j4hw9x4eamx");
  t.equal(verifyWebhook({ secret, headers: { ...headers, "webhook-test": "true" }, body, ...at }).isTest, true);
  t.end();
});

t.test("Every flipped bit of id, time, body and signature is refused", (t) => {
  let tried = 0;
  const refuse = (changed: Partial<typeof headers>, text: Uint8Array | string = body) => {
    tried += 1;
    const call = () =>
      verifyWebhook({ secret, headers: { ...headers, ...changed }, body: text, toleranceSeconds: 1e12 });
    try {
      call();
    } catch (error) {
      if (error instanceof WebhookError) return;
    }
    t.fail(`accepted ${JSON.stringify(changed)} ${Buffer.from(text).toString("latin1")}`);
  };
  for (const [name, value] of Object.entries(headers))
    for (const bytes of flipEach(Buffer.from(value, "latin1"))) refuse({ [name]: bytes.toString("latin1") });
  for (const bytes of flipEach(Buffer.from(body))) refuse({}, bytes);
  for (const bytes of flipEach(Buffer.from(body))) refuse({}, bytes.toString("latin1"));
  const bits = 8 * (Object.values(headers).join("").length + 2 * body.length);
  t.equal(tried, bits);
  t.end();
});

t.test("While a secret is replaced, each pair of old and new secrets and signatures is accepted", (t) => {
  const [before, after] = [newWebhookSecret(), newWebhookSecret()];
  const signed = (...secrets: string[]) => ({
    ...headers,
    "webhook-signature": secrets.map((one) => signWebhook(one, headers["webhook-id"], 1781985600, body)).join(" "),
  });
  for (const accepted of [before, after, [before, after], [after, before]])
    t.equal(verifyWebhook({ secret: accepted, headers: signed(before, after), body, ...at }).isTest, false);
  t.equal(verifyWebhook({ secret: [before, after], headers: signed(after), body, ...at }).isTest, false);
  t.throws(() => verifyWebhook({ secret: after, headers: signed(before), body, ...at }), WebhookError);
  t.throws(() => verifyWebhook({ secret: [], headers: signed(before), body, ...at }), WebhookError);
  t.throws(() => verifyWebhook({ secret: "whsec_", headers: signed(before), body, ...at }), TypeError);
  t.throws(() => verifyWebhook({ secret: "", headers: signed(before), body, ...at }), TypeError);
  t.end();
});

t.test("A webhook is accepted up to 300 seconds off, or what the receiver tolerates", (t) => {
  const tryAt = (seconds: number, toleranceSeconds?: number) => {
    const now = (1781985600 + seconds) * 1000;
    return () =>
      verifyWebhook({ secret, headers, body, now, ...(toleranceSeconds !== undefined && { toleranceSeconds }) });
  };
  for (const call of [tryAt(300), tryAt(-300), tryAt(10, 10)]) t.doesNotThrow(call);
  for (const call of [tryAt(300.001), tryAt(-300.001), tryAt(10.001, 10)]) t.throws(call, WebhookError);
  t.throws(() => verifyWebhook({ secret, headers, body }), WebhookError, "by the clock");
  t.end();
});

t.test("Missing headers and a body that is no event are refused", (t) => {
  for (const name of Object.keys(headers))
    for (const value of [undefined, "", ["a", "b"]])
      t.throws(() => verifyWebhook({ secret, headers: { ...headers, [name]: value }, body, ...at }), {
        name: "WebhookError",
        message: `the webhook has no ${name}`,
      });
  for (const text of ["no JSON", "null", "1"]) {
    const signature = signWebhook(secret, headers["webhook-id"], 1781985600, text);
    const signed = { ...headers, "webhook-signature": signature };
    t.throws(() => verifyWebhook({ secret, headers: signed, body: text, ...at }), /has no event/);
  }
  // A timestamp that is no number would be within any tolerance.
  const signed = signWebhook(secret, headers["webhook-id"], NaN, body);
  const noTime = { ...headers, "webhook-timestamp": "NaN", "webhook-signature": signed };
  t.throws(() => verifyWebhook({ secret, headers: noTime, body, ...at }), WebhookError);
  t.end();
});

function* flipEach(bytes: Buffer): Generator<Buffer> {
  for (let bit = 0; bit < bytes.length * 8; bit += 1) {
    const flipped = Buffer.from(bytes);
    flipped[bit >> 3]! ^= 1 << (bit & 7);
    yield flipped;
  }
}
