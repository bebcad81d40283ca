// Crockford Base32, the alphabet of coupon codes, external IDs and key versions: no I, L, O or U.
export const crockfordAlphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/** The two characters of each ten-bit number. */
export const crockfordPairs = Array.from(
  { length: 1024 },
  (_, bits) => crockfordAlphabet[bits >>> 5]! + crockfordAlphabet[bits & 31]!,
);
