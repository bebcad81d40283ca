// The table of routes, and the way from a raw path to one of them.
//
// Paths are matched as they stand on the request line: `/v1/batches/`, `/v1//batches` and `/v1/%62atches` are no
// routes. h3's own router takes them for `/v1/batches`, so h3 carries requests here but does not route them.
import { Problem } from "../common/problem.ts";
import type { Route } from "./route.ts";
import { allocateBatch } from "./routes/allocate-batch.ts";
import { cancel } from "./routes/cancel.ts";
import { confirm } from "./routes/confirm.ts";
import { createBatch } from "./routes/create-batch.ts";
import { getBatch } from "./routes/get-batch.ts";
import { getReconciliation } from "./routes/get-reconciliation.ts";
import { getRequest } from "./routes/get-request.ts";
import { listReconciliations } from "./routes/list-reconciliations.ts";
import { lock } from "./routes/lock.ts";
import { pullEvents } from "./routes/pull-events.ts";
import { query } from "./routes/query.ts";
import { redeem } from "./routes/redeem.ts";
import { reverse } from "./routes/reverse.ts";
import { voidCoupon } from "./routes/void.ts";

export const routes: readonly Route[] = [
  lock,
  redeem,
  confirm,
  cancel,
  reverse,
  voidCoupon,
  query,
  createBatch,
  getBatch,
  allocateBatch,
  getRequest,
  pullEvents,
  listReconciliations,
  getReconciliation,
];

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

  // A fixed path hides a pattern that would match too: GET /v1/batches/allocate is 405.
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
  const route = group.find((candidate) => candidate.method === method);
  if (route === undefined)
    throw new Problem("METHOD_NOT_ALLOWED", null, { allow: group.map((candidate) => candidate.method).join(", ") });
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
