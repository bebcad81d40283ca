// The signature of webhooks. That receivers accept it is tested in test/worker/webhook-sender.test.ts.
import t from "tap";
import { refuseWebhook, signWebhook } from "../../src/crypto/webhook-signature.ts";

t.test("the example of the Standard Webhooks specification gets its published signature", async (t) => {
  const signature = signWebhook(
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "msg_p5jXN8AQM9LWM0D4loKWxJek",
    1614265330,
    '{"test": 2432232314}',
  );
  t.equal(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
});

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const older = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
const sentAt = 1614265330;
const id = "msg_p5jXN8AQM9LWM0D4loKWxJek";
const body = Buffer.from('{"test": 2432232314, "text": "für"}');
const received = { id, timestamp: String(sentAt), signature: signWebhook(secret, id, sentAt, body), body };
const judge = (changes: object, secrets = [secret], atMs = sentAt * 1000) =>
  refuseWebhook(secrets, { ...received, ...changes }, atMs);
const wrong = "no signature is right: another secret, or a changed body";

t.test("a receiver accepts each of two secrets and each of two signatures, and no other", async (t) => {
  t.equal(judge({}), null);
  t.equal(judge({}, [older, secret]), null, "two secrets");
  const old = signWebhook(older, id, sentAt, body);
  t.equal(judge({ signature: `${old} ${received.signature}` }), null, "two signatures");
  t.equal(judge({ signature: `${received.signature} ${old}` }), null, "in the other order");
  t.equal(judge({}, [older]), wrong, "another secret");
  t.equal(judge({ signature: received.signature.replace("v1,", "v1a,") }), wrong, "another version");
  t.equal(judge({ id: `${id}x` }), wrong, "another ID");
  t.equal(judge({ timestamp: String(sentAt + 1) }), wrong, "another time");
});

t.test("each flipped bit of a body or signature is refused", async (t) => {
  const flip = (bytes: Buffer, bit: number) => {
    const copy = Buffer.from(bytes);
    copy[bit >> 3]! ^= 1 << (bit & 7);
    return copy;
  };
  for (let bit = 0; bit < body.length * 8; bit += 1) t.equal(judge({ body: flip(body, bit) }), wrong);
  const signature = Buffer.from(received.signature, "latin1");
  for (let bit = 0; bit < signature.length * 8; bit += 1)
    t.equal(judge({ signature: flip(signature, bit).toString("latin1") }), wrong);
});

t.test("a receiver accepts a timestamp up to 300 s off, and no header that is missing or malformed", async (t) => {
  for (const seconds of [-300, 300]) t.equal(judge({}, [secret], (sentAt + seconds) * 1000), null);
  for (const seconds of [-301, 301])
    t.equal(judge({}, [secret], (sentAt + seconds) * 1000), "the timestamp is more than 300 s off");
  for (const changes of [{ id: "" }, { signature: "" }, { timestamp: "" }, { timestamp: "1e9" }, { timestamp: "-1" }])
    t.equal(judge(changes), "a header is missing or malformed");
});
