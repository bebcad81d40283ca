// Midnights that come during a test, and redeems around them.
import { sendPatiently } from "./client.ts";
import { untilPast } from "./race.ts";
import { newRequestId, type Running } from "./service.ts";

export const nowSeconds = () => Math.ceil(Date.now() / 1000);

/** The first whole second at or after a moment of arrangeBefore, to be a midnight. */
export const secondAfter = (moment: string) => Math.ceil(Date.parse(moment) / 1000);

/** Moments are Unix seconds. */
export const dateOf = (moment: number) => new Date(moment * 1000).toISOString().slice(0, 10);

export const untilMoment = (service: Running, moment: number) =>
  untilPast(service, new Date(moment * 1000).toISOString());

/** Returns the redemption. */
export async function redeem(service: Running, accessKey: string, coupon: string, merchant: string): Promise<string> {
  const body = { request_id: newRequestId(), coupon, merchant };
  const { json, text } = await sendPatiently(() => service.as(accessKey).post("/v1/coupons/redeem", body));
  if (json.redemption === undefined) throw new Error(text);
  return json.redemption;
}
