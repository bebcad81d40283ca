// Finds where a text stops being JSON. JSON.parse says it only for some errors, and its messages quote the text.
const blanks = /[ \t\r\n]*/y;
// A string without its closing quote.
const stringStart = /"(?:[ !#-[\]-\uffff]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*/y;
const scalar = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;

// What may come next. "first": of an array, which may be empty.
type Expected = "value" | "first value" | "name" | "first name" | "colon" | "end";

/** Returns the index of the first character that cannot be there, or the length of the text if its end is missing. */
export function findJsonError(text: string): number {
  const open: string[] = [];
  let expected: Expected = "value";
  for (let at = endOf(blanks, text, 0)!; ; at = endOf(blanks, text, at)!) {
    const character = text[at];
    if (expected === "end" && open.length === 0) return at;
    if (character === undefined) return at;
    const closed = character === "}" ? "first name" : character === "]" ? "first value" : null;
    if (closed !== null && (expected === "end" || expected === closed) && open.at(-1) === character) {
      open.pop();
      expected = "end";
      at += 1;
    } else if (expected === "end" || expected === "colon") {
      if (character !== (expected === "colon" ? ":" : ",")) return at;
      expected = expected === "end" && open.at(-1) === "}" ? "name" : "value";
      at += 1;
    } else if (character === '"') {
      const end = endOf(stringStart, text, at)!;
      if (text[end] !== '"') return end;
      expected = expected.endsWith("name") ? "colon" : "end";
      at = end + 1;
    } else if (expected.endsWith("name")) {
      return at;
    } else if (character === "{" || character === "[") {
      open.push(character === "{" ? "}" : "]");
      expected = character === "{" ? "first name" : "first value";
      at += 1;
    } else {
      const end = endOf(scalar, text, at);
      if (end === null) return at;
      expected = "end";
      at = end;
    }
  }
}

function endOf(pattern: RegExp, text: string, at: number): number | null {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : null;
}
