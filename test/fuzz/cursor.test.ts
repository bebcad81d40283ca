// Generated cursors: random ones, and cursors of real pages with changes.
import fc from "fast-check";
import t from "tap";
import { keepBusinessDays } from "../support/business-days.ts";
import { findUndocumented } from "../support/documented.ts";
import { newRequestId, startService } from "../support/service.ts";

t.test("Any cursor returns a page of the caller's own events or 400", async (t) => {
  const service = await startService(t);
  const { sequence } = await keepBusinessDays(t, service);
  const [a, stranger, dist, other] = ["ak_a", "ak_a_stranger", "ak_dist", "ak_other"].map(service.as) as [
    any,
    any,
    any,
    any,
  ];
  const own = new Map<unknown, Set<string>>([
    [stranger, new Set()],
    [other, new Set()],
  ]);
  for (const [reader, by, maker, template, merchant] of [
    [a, "ak_a", "ak_a", "tpl_fixed", "mch_a"],
    [dist, "ak_pos", "ak_maker", "tpl_b", "mch_b"],
  ] as const) {
    const { codes, couponIds } = await service.makeBatch(service.as(maker), template, 12);
    for (const coupon of codes)
      await service.as(by).post("/v1/coupons/redeem", { request_id: newRequestId(), coupon, merchant });
    own.set(reader, new Set(couponIds));
  }
  await sequence();
  const given: string[] = [];
  // A caller without events gets the cursor of the beginning.
  for (const reader of [a, dist, stranger])
    for (const limit of [1, 2, 5, 12]) given.push((await reader.get(`/v1/events?limit=${limit}`)).json.next_cursor);

  const changed = fc
    .tuple(fc.constantFrom(...given), fc.nat(40), fc.string({ unit: "binary", maxLength: 3 }), fc.nat(3))
    .map(([cursor, at, more, gone]) => cursor.slice(0, at) + more + cursor.slice(at + gone));
  const cursor = fc.oneof(
    changed.map(encodeURIComponent),
    fc.constantFrom(...given),
    fc.string({ unit: "binary", maxLength: 70 }).map(encodeURIComponent),
    // The usual prefix with random base64, and texts with invalid escapes.
    fc.uint8Array({ maxLength: 12 }).map((bytes) => `cur_${Buffer.from(bytes).toString("base64url")}`),
    fc.string({ unit: fc.constantFrom(..."%AZaz09_-=+&;.~!*'()"), maxLength: 20 }),
  );
  const seen: Record<string, number> = {};
  const until = performance.now() + 10_000;
  await fc.assert(
    fc.asyncProperty(
      cursor,
      fc.constantFrom(a, stranger, dist, other),
      fc.constantFrom("", "&limit=1", "&limit=1000"),
      async (text, reader, limit) => {
        if (performance.now() > until) return true;
        const startedAt = performance.now();
        const answer = await reader.get(`/v1/events?cursor=${text}${limit}`);
        const problem = findUndocumented(answer, performance.now() - startedAt);
        if (problem !== null) throw new Error(problem);
        seen[answer.status] = (seen[answer.status] ?? 0) + 1;
        if (answer.status !== 200) return answer.status === 400;
        return answer.json.events.every((event: { coupon_id: string }) => own.get(reader)!.has(event.coupon_id));
      },
    ),
    { numRuns: 600 },
  );
  t.comment(JSON.stringify(seen));
  t.ok(seen["200"]! > 0 && seen["400"]! > 0);
});
