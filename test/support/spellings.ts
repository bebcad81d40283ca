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

/** URLs of webhooks that have another form once they are parsed. */
export const rawUrls = [
  "HTTP://x.example/",
  " https://x.example/",
  "http:x.example",
  "https://x\t.example/",
  "https:\\\\x.example",
];

/** URLs of webhooks that a provisioning file may have. */
export const rightUrls = [
  "https://x.example/a?b=c#d",
  "http://127.0.0.1:3000",
  "https://[2606:4700::1]:8443/hook",
  "https://m\u00fcller.example/\u00fc b?\u00fc",
  "https://x.example:443/a@b:0/c",
  "https://x.example:10/",
  ...rawUrls,
];

/** URLs of webhooks that neither a file nor the table may have. */
export const wrongUrls = [
  "ftp://x.example",
  "x.example",
  "",
  "https://u@x.example",
  "https://:p@x.example",
  "http://",
  "https://:80/",
  "https://x.example:0",
  "http://[2606:4700::1]:00/",
  "javascript://x.example/",
];
