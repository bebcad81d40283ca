// docs/integrate.md lists the operations and errors that the source has.
import t from "tap";
import { routes } from "../../src/http/routes/table.ts";
import { read } from "./markdown.ts";

const page = read("docs/integrate.md");

t.test("docs/integrate.md lists every operation with its method and path, and no other", async (t) => {
  const listed = [...page.matchAll(/^\| \[(\w+)\]\([^)]+\) \| (GET|POST) `([^`]+)` \|$/gm)];
  t.strictSame(
    listed.map(([, operation, method, path]) => `${operation} ${method} ${path}`).sort(),
    routes.map(({ operation, method, path }) => `${operation} ${method} ${path}`).sort(),
  );
});

t.test("docs/integrate.md lists every error code with its status, in the order of precedence", async (t) => {
  const listed = [...page.matchAll(/^\| (\d{3}) \| `([A-Z_]+)` \|/gm)].map(([, status, code]) => `${status} ${code}`);
  const sources = [
    [...read("src/http/problem.ts").matchAll(/^ {2}([A-Z_]+): \[\s*(\d{3}),/gm)],
    [...read("db/code/rules/answer/refuse.sql").matchAll(/when '([A-Z_]+)'[^]*?\b(4\d\d)\b/g)],
  ].map((source) => source.map(([, code, status]) => `${status} ${code}`));
  t.strictSame([...new Set(sources.flat())].sort(), listed.toSorted());
  for (const source of sources) {
    t.ok(source.length > 10);
    t.strictSame(
      listed.filter((line) => source.includes(line)),
      source,
    );
  }
});
