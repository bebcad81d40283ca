// Searches bytes for codes in every form in which a leak could contain them.

const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

// The forms: as typed, in groups, in lower case, and as UTF-16; the 80 bits that the 16 characters encode; and the
// bytes of these in hex and base64.
function spell(code: string): Buffer[] {
  const texts = [code, code.replace(/(.{4})(?=.)/g, "$1-")].flatMap((text) => [text, text.toLowerCase()]);
  const bits = [...code].reduce((sum, character) => sum * 32n + BigInt(alphabet.indexOf(character)), 0n);
  const packed = Buffer.from(bits.toString(16).padStart(20, "0"), "hex");
  const encoded = [...texts.map((text) => Buffer.from(text)), packed].flatMap((bytes) => {
    const hex = bytes.toString("hex");
    // The base64 text of a code depends on its offset modulo three in the encoded bytes.
    const base64 = [0, 1, 2].map((offset) => {
      const text = Buffer.concat([Buffer.alloc(offset), bytes])
        .toString("base64")
        .replace(/=+$/, "");
      return text.slice(Math.ceil((offset * 8) / 6), text.length - ((offset + bytes.length) % 3 === 0 ? 0 : 1));
    });
    return [hex, hex.toUpperCase(), ...base64, ...base64.map((text) => text.replaceAll("+", "-").replaceAll("/", "_"))];
  });
  const all = [
    ...texts.map((text) => Buffer.from(text)),
    ...texts.map((text) => Buffer.from(text, "utf16le")),
    packed,
    ...encoded.map((text) => Buffer.from(text)),
  ];
  return [...new Map(all.map((bytes) => [bytes.toString("latin1"), bytes])).values()];
}

// Finds which of the codes occur. It passes over the bytes once, whatever the number of codes and forms.
export function searchFor(codes: readonly string[]): (bytes: Uint8Array) => string[] {
  const spellings = codes.flatMap((code) => spell(code).map((bytes) => ({ code, bytes })));
  // The forms by their first two bytes.
  const beginnings = new Map<number, typeof spellings>();
  const isBeginning = new Uint8Array(65_536);
  for (const one of spellings) {
    const first = (one.bytes[0]! << 8) | one.bytes[1]!;
    isBeginning[first] = 1;
    beginnings.set(first, [...(beginnings.get(first) ?? []), one]);
  }

  return (given) => {
    const bytes = Buffer.from(given.buffer, given.byteOffset, given.byteLength);
    const found = new Set<string>();
    for (let at = 0; at < bytes.length - 1; at += 1) {
      const first = (bytes[at]! << 8) | bytes[at + 1]!;
      if (isBeginning[first] === 0) continue;
      for (const { code, bytes: spelling } of beginnings.get(first)!) {
        if (at + spelling.length <= bytes.length && spelling.compare(bytes, at, at + spelling.length) === 0)
          found.add(code);
      }
    }
    return [...found];
  };
}
