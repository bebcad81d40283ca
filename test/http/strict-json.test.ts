// The reader of bodies, and the hash that compares bodies by value.
import t from "tap";
import { canonicalJson, hashBody } from "../../src/crypto/body-hash.ts";
import { parseObject } from "../../src/http/strict-json.ts";
import { parseMasterKeys } from "../../src/crypto/keys.ts";
import { newId } from "../../src/formats/id.ts";
import { Problem } from "../../src/http/problem.ts";

const keys = parseMasterKeys(Buffer.alloc(32, 7).toString("base64"));
const read = (text: string | Uint8Array) => parseObject(Buffer.from(text));

t.test("JSON objects are read", async (t) => {
  const texts = [
    "{}",
    ' {\n"a" : [1, {"a": "b"}], "c":"a" , "d":{"a":"a:","b":":"}}\r\n',
    '{"a":"\\"a\\":","b":"\\\\","\\u00e4":"😀 \\ud83d\\ude00"}',
    '{"a":["a","a"],"b":{"a":1}}',
    '{"a":"__proto__","__proto":["__proto__"]}',
  ];
  for (const text of texts) t.strictSame(read(text), JSON.parse(text));
});

t.test("Everything else is refused, and the refusal repeats nothing of it", async (t) => {
  const bad: (string | Uint8Array)[] = [
    "",
    "null",
    "1",
    '"text"',
    "[]",
    "{",
    "{}{}",
    "{'a':1}",
    '{"a":1,}',
    '{"a":NaN}',
    '{"a":01}',
    "\ufeff\ufeff{}",
    " \ufeff{}",
    '{"a":"\t"}',
    new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]),
    new Uint8Array([0x22, 0xed, 0xa0, 0x80, 0x22]),
    '{"a":1,"a":2}',
    '{"a":[1],"a":2}',
    '{"a":{},"a":2}',
    '{"a":1,"\\u0061":2}',
    '{"a":1, "b":[{"c":1,"d":{},"c" \n : 2}]}',
    '{"a":1,"b":"x","a"                                        :1}',
    '{"__proto__":1}',
    '{"redemption_context":{"items":[{"__proto__":{}}]}}',
    '{"a":{"\\u005f_proto__":null}}',
    '{"a":"\\u0000"}',
    '{"\\u0000":1}',
    '{"a":"\\ud800"}',
    '{"a":["\\udc00\\ud800"]}',
    `${"[".repeat(30_000)}`,
    '{"coupon":"10ABCDEFGHJKMNPQ" "merchant":1}',
  ];
  for (const text of bad) {
    try {
      read(text);
      t.fail(`accepted ${text}`);
    } catch (error) {
      t.ok(error instanceof Problem && error.code === "INVALID_REQUEST");
      t.notMatch(JSON.stringify((error as Problem).details), "10ABCDEFGHJKMNPQ");
    }
  }
});

t.test("A byte order mark is skipped", async (t) => {
  t.strictSame(read('\ufeff{"a":1}'), { a: 1 });
});

t.test("A refusal names line and column", async (t) => {
  const places: [text: string | Uint8Array, message: string][] = [
    ['{\n  "a": 1,\n  "b": x\n}', "is not JSON at line 3, column 8"],
    ['\ufeff{"a": 1,}', "is not JSON at line 1, column 9"],
    ['{"ä😀": 1\r\n "b": 2}', "is not JSON at line 2, column 2"],
    ['{"a": 01}', "is not JSON at line 1, column 8"],
    ['{"a": "x\ty"}', "is not JSON at line 1, column 9"],
    ['{"a": "\\x"}', "is not JSON at line 1, column 8"],
    ['{"a": [1 2]}', "is not JSON at line 1, column 10"],
    ['{"a": [1}', "is not JSON at line 1, column 9"],
    ['{"a": [,]}', "is not JSON at line 1, column 8"],
    ["{'a': 1}", "is not JSON at line 1, column 2"],
    ['{"a" 1}', "is not JSON at line 1, column 6"],
    ["{} {}", "is not JSON at line 1, column 4"],
    ['{"a": {\n', "is not JSON at line 2, column 1"],
    ["", "is not JSON at line 1, column 1"],
    ['{"a":1,\n"a":2}', "has a duplicate key at line 2, column 1"],
    ['{\n"__proto__":2}', "has a key __proto__ at line 2, column 1"],
    ['{"a":"\\u0000"}', "contains \\u0000 or half of a surrogate pair at line 1, column 6"],
    [Buffer.from('{"a":\n"Müller"}', "latin1"), "is not UTF-8 at line 2, column 3"],
    [Buffer.from('{"a":1}', "utf16le"), "is not JSON at line 1, column 2"],
    [Buffer.from('\ufeff{"a":1}', "utf16le"), "is UTF-16, not UTF-8"],
  ];
  for (const [text, message] of places) {
    const details = { issues: [{ path: "(body)", message: `the body ${message}` }] };
    t.throws(() => read(text), { details } as never, message);
  }
});

t.test("Only the coupon may contain NUL, which some scanners add, and only at the top", async (t) => {
  t.strictSame(read('{"coupon":"10AB\\u0000"}'), { coupon: "10AB\u0000" });
  for (const text of ['{"a":{"coupon":"\\u0000"}}', '{"coupon":1,"a":"\\u0000"}', '{"coupon":"x","\\u0000":1}'])
    t.throws(() => read(text), { code: "INVALID_REQUEST" }, text);
});

t.test("A body has at most 32 levels, because later steps visit it by recursion", async (t) => {
  const nest = (depth: number) => `{"a":${"[".repeat(depth - 1)}${"]".repeat(depth - 1)}}`;
  t.ok(read(nest(32)));
  for (const depth of [33, 10_000]) t.throws(() => read(nest(depth)), { code: "INVALID_REQUEST" }, `${depth}`);
});

t.test(
  "The body hash compares values: key order, spaces, spelling of numbers and request_id do not matter",
  async (t) => {
    const hash = (text: string) => hashBody(keys, read(text));
    t.not(hash('{"a":1e400}'), hash('{"a":null}'), "a number beyond a double is not null");
    const plain = hash('{"request_id":"r-1","a":1.5,"b":{"x":[1,2],"y":"z"}}');
    t.match(plain, /^[0-9a-f]{16}$/);
    t.equal(hash('{ "b":{"y":"\\u007a","x":[1.0,2e0]}, "a":15e-1, "request_id":"r-2" }'), plain);
    for (const other of [
      '{"a":1.5,"b":{"x":[2,1],"y":"z"}}',
      '{"a":"1.5","b":{"x":[1,2],"y":"z"}}',
      '{"a":1.5,"b":{"x":[1,2],"y":"z","request_id":"r"}}',
      '{"a":1.5}',
      "{}",
    ]) {
      t.not(hash(other), plain, other);
    }
    t.equal(canonicalJson({ b: undefined, a: [null, { d: 1, c: "ü" }] }), '{"a":[null,{"c":"ü","d":1}]}');
    for (let code = 0; code < 256; code += 1) {
      const text = `a${String.fromCharCode(code)}`;
      t.equal(canonicalJson({ [text]: text }), JSON.stringify({ [text]: text }), `character ${code}`);
    }
  },
);

t.test(
  "The current master key hashes a body, so an older one can go; the older hash can be made until then",
  async (t) => {
    const [next, former] = [9, 7].map((byte) => Buffer.alloc(32, byte).toString("base64"));
    const rotated = parseMasterKeys(`2:${next},1:${former}`);
    t.equal(hashBody(rotated, { a: 1 }), hashBody(parseMasterKeys(`2:${next}`), { a: 1 }));
    t.equal(hashBody(rotated, { a: 1 }, "1"), hashBody(keys, { a: 1 }));
  },
);

t.test("Generated IDs are TypeIDs", async (t) => {
  t.match(newId("req"), /^req_[0-7][0-9a-hjkmnp-tv-z]{25}$/);
  t.equal(
    newId("req", 1_781_985_600_000).slice(0, 13),
    newId("req", 1_781_985_600_000).slice(0, 13),
    "the time is at the beginning",
  );
  t.not(newId("req"), newId("req"));
});
