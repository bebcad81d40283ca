// Finds the route of a raw path.
//
// Paths are matched exactly as they arrive on the request line: `/v1/batches/`, `/v1//batches` and `/v1/%62atches`
// match no route. Routers of packages would treat them as `/v1/batches`.
import { Problem } from "./problem.ts";

/**
 * Splits a request target into its path, and its query with the question mark. A target in absolute form, as RFC 9112
 * requires servers to accept, also has scheme and host; they do not matter here.
 */
export function splitTarget(target: string): { path: string; query: string } {
  const relative = target.replace(/^https?:\/\/[^/?]*/i, "");
  const [path = ""] = relative.split("?", 1);
  return { path, query: relative.slice(path.length) };
}

export type Match<R> = { route: R; segments: Record<string, string> };
type Matched = { path: string; method: string };
type Pattern<R> = { expression: RegExp; names: string[]; routes: R[] };

export function createMatcher<R extends Matched>(table: readonly R[]): (method: string, path: string) => Match<R> {
  const fixed = new Map<string, R[]>();
  const patterns: Pattern<R>[] = [];
  for (const [path, group] of Map.groupBy(table, (route) => route.path)) {
    if (!path.includes("{")) fixed.set(path, group);
    else patterns.push({ ...compile(path), routes: group });
  }

  // A fixed path takes precedence over a pattern, so GET /v1/batches/allocate is a 405.
  return (method, path) => {
    const group = fixed.get(path);
    if (group !== undefined) return { route: choose(group, method), segments: {} };
    for (const { expression, names, routes: candidates } of patterns) {
      const found = expression.exec(path);
      if (found === null) continue;
      return {
        route: choose(candidates, method),
        segments: Object.fromEntries(names.map((name, index) => [name, found[index + 1]!])),
      };
    }
    throw new Problem("ROUTE_NOT_FOUND");
  };
}

function choose<R extends Matched>(group: R[], method: string): R {
  // HEAD is a GET whose answer has no body.
  const wanted = method === "HEAD" ? "GET" : method;
  const route = group.find((candidate) => candidate.method === wanted);
  if (route === undefined)
    throw new Problem("METHOD_NOT_ALLOWED", null, {
      headers: { allow: group.map(({ method: allowed }) => (allowed === "GET" ? "GET, HEAD" : allowed)).join(", ") },
    });
  return route;
}

function compile(path: string): { expression: RegExp; names: string[] } {
  const names: string[] = [];
  const source = path.replace(/\{(\w+)\}/g, (_, name: string) => {
    names.push(name);
    return "([^/]+)";
  });
  return { expression: new RegExp(`^${source}$`), names };
}
