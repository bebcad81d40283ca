// The ways in which people and programs write a coupon code.

export const inGroups = (code: string): string => code.replace(/(.{4})(?=.)/g, "$1-");

const fullWidth = (code: string): string =>
  code.replace(/./g, (character) => String.fromCharCode(character.charCodeAt(0) + 0xfee0));
// Invisible in most fonts.
const inTags = (code: string): string =>
  code.replace(/./g, (character) => String.fromCodePoint(character.charCodeAt(0) + 0xe0000));
const accented = (code: string): string => code.replace(/./g, "$&\u0301");

/** Every text contains the code and nothing else that matters. */
export function spellings(code: string): string[] {
  const grouped = inGroups(code);
  const [a, b] = [code.slice(0, 7), code.slice(7)];
  return [
    code,
    code.toLowerCase(),
    grouped,
    grouped.toLowerCase(),
    grouped.replaceAll("-", " "),
    grouped.replaceAll("-", "_"),
    grouped.replaceAll("-", "."),
    grouped.replaceAll("-", "\u2013"),
    [...code].join(" "),
    code.replaceAll("0", "O").replaceAll("1", "I"),
    code.replaceAll("0", "o").replaceAll("1", "l"),
    fullWidth(code),
    inTags(code),
    // Accents as characters of their own, as parts of letters, and on full-width letters.
    accented(code),
    accented(code).normalize("NFC"),
    accented(fullWidth(code)),
    // What the field coupon skips too.
    ...[..."\u200b\u30fc\u3164\u2800\u2212\u00ad"].map((filler) => a + filler + b),
    `${a}/${b}`,
    `lock-${grouped.toLowerCase()}`,
    `x${code.toLowerCase()}y`,
    `(${code})`,
    `code ${grouped} of Mr Müller`,
  ];
}
