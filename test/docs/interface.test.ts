// docs/integrate.md lists the operations and errors that the source has.
import t from "tap";
import { errors, type ErrorCode } from "../../src/http/errors.ts";
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

t.test(
  "docs/integrate.md lists every error code with its status and meaning, in the order of precedence",
  async (t) => {
    const listed = [...page.matchAll(/^\| (\d{3}) \| `([A-Z_]+)` \| (.*) \|$/gm)];
    t.strictSame(
      // The page links to its own sections.
      listed.map(([, status, code, meaning]) => [
        code,
        Number(status),
        meaning!.replace(/\[([^\]]+)\]\(#[\w-]+\)/g, "$1"),
      ]),
      Object.entries(errors).map(([code, { status, meaning }]) => [code, status, meaning]),
    );
  },
);

t.test(
  "Every error code is returned by the HTTP layer or by rules.refuse, which have it in the same order",
  async (t) => {
    const all = Object.entries(errors).map(([code, { status }]) => `${status} ${code}`);
    const http = [...read("src/http/problem.ts").matchAll(/^ {2}([A-Z_]+):\s+"/gm)].map(
      ([, code]) => `${errors[code as ErrorCode].status} ${code}`,
    );
    const database = [...read("db/code/rules/answer/refuse.sql").matchAll(/when '([A-Z_]+)'[^]*?\b(4\d\d)\b/g)].map(
      ([, code, status]) => `${status} ${code}`,
    );
    for (const source of [http, database]) {
      t.ok(source.length > 10);
      t.strictSame(
        all.filter((line) => source.includes(line)),
        source,
      );
    }
    t.strictSame([...new Set([...http, ...database])].sort(), all.toSorted());
  },
);
