import t from "tap";

t.test("t.match allows further fields", async (t) => {
  t.match({ a: 1, b: 2 }, { a: 1 });
  t.match([{ a: 1, b: { c: 2, d: 3 } }], [{ b: { c: 2 } }]);
});

t.test("t.match compares the length of a list", async (t) => {
  t.notMatch([1, 2], [1]);
  t.notMatch([1], []);
  t.notMatch([1], [1, 2]);
  t.notMatch({ a: [{ b: 1 }, { b: 2 }] }, { a: [{ b: 1 }] });
  t.match([1, "b"], [Number, /b/]);
});

t.test("t.match compares the whole text and the type of a field or an entry", async (t) => {
  t.notMatch({ a: "10" }, { a: "1" });
  t.notMatch(["10"], ["1"]);
  t.notMatch({ a: 1 }, { a: "1" });
  t.notMatch({ a: 1n }, { a: 1 });
  t.notMatch({ a: true }, { a: 1 });
  t.match({ a: "10", b: 1n, c: false }, { a: "10", b: 1n, c: false });
});

t.test("t.match finds a part of a text", async (t) => {
  t.match("10", "1");
});
