// The signature of webhooks. That receivers accept it is tested in test/worker/webhook-sender.test.ts
// and test/clients/webhook.test.ts.
import t from "tap";
import { signWebhook } from "../../src/crypto/webhook-signature.ts";

t.test("the example of the Standard Webhooks specification gets its published signature", async (t) => {
  const signature = signWebhook(
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "msg_p5jXN8AQM9LWM0D4loKWxJek",
    1614265330,
    '{"test": 2432232314}',
  );
  t.equal(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
});
