// The tests of this folder are short; `npm run rehearse` runs them at length.
export const isLong = process.env["COUPON_REHEARSAL"] === "long";
