// Runs in Postman after each answer: keeps the IDs that the next requests need.
pm.test(`${pm.info.requestName}: 200`, () => {
  if (pm.response.code !== 200) throw new Error(pm.response.text());
});

const keep = (name, value) => typeof value === "string" && pm.collectionVariables.set(name, value);
if (pm.response.code === 200 && pm.response.headers.get("content-type").startsWith("application/json")) {
  const { redemption, batch, coupon, reconciliations } = pm.response.json();
  keep("redemption", redemption);
  if (/coupons\/(lock|redeem)$/.test(pm.request.url.toString()))
    keep("lock_request_id", pm.variables.get("request_id"));
  if (batch) keep("batch", batch.external_id);
  if (coupon) keep("coupon_id", coupon.coupon_id);
  if (reconciliations && reconciliations.length > 0) keep("date", reconciliations.slice(-1)[0].business_date);
}
