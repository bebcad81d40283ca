// The tests of this folder are short by default. `npm run rehearse` runs the long form.
export const isLong = process.env["COUPON_REHEARSAL"] === "long";
