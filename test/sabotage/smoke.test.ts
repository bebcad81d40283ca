// The service works: `npm run sabotage` runs this beside the tests that must notice a missing guard.
import t from "tap";
import { fits } from "../support/fits.ts";
import { newRequestId, startService } from "../support/service.ts";

t.test("A coupon is minted, released and redeemed", async (t) => {
  const service = await startService(t);
  const { codes } = await service.makeBatch(service.as("ak_a"), "tpl_fixed", 2);
  const redeem = { request_id: newRequestId(), coupon: codes[0], merchant: "mch_a", order_id: "1" };
  fits(t, await service.as("ak_a").post("/v1/coupons/redeem", redeem), { status: 200, json: { ok: true } });
});
