// The workload: scenarios about one coupon or one batch each, drawn from the seed. The steps of a scenario follow each
// other; the calls of a step are sent at the same time, so that calls of two tills race.
export type Variant = "A" | "B";
export type Kind =
  "redeem" | "lock" | "confirm" | "cancel" | "reverse" | "void" | "query" | "create_batch" | "allocate_batch";
export type Call = {
  requestId: string;
  variant: Variant;
  accessKey: string;
  kind: Kind;
  values: Record<string, unknown>;
  // The request_id of the redemption or batch whose answer this call needs.
  needs: string | null;
  idempotencyKey: string | null;
  // When the same call is sent again under the same request_id.
  again: "never" | "at once" | "later";
};
// pauseMs: before each step.
export type Scenario = { steps: Call[][]; pauseMs(): number };

export const usualTemplate = "tpl_chaos";
// How long a lock lasts. The short ones end while calls on their coupon are under way.
export const lockSecondsOf: Record<string, number> = { [usualTemplate]: 900, tpl_brief: 1 };
type Till = { accessKey: string; merchant: string };
type Tenant = { id: string; maker: string; reader: string; tills: [Till, Till] };
// In Variant B the tills belong to two parties; in A they are two access keys of one caller. The reader reads the feed.
export const tenants: Record<Variant, Tenant> = {
  A: {
    id: "ten_a",
    maker: "ak_a",
    reader: "ak_a",
    tills: [
      { accessKey: "ak_a", merchant: "mch_a" },
      { accessKey: "ak_a_second", merchant: "mch_a2" },
    ],
  },
  B: {
    id: "ten_b",
    maker: "ak_maker",
    reader: "ak_dist",
    tills: [
      { accessKey: "ak_shop", merchant: "mch_b" },
      { accessKey: "ak_pos", merchant: "mch_b" },
    ],
  },
};

// How many scenarios share a coupon.
const sharers = 5;

type Make = (kind: Kind, about?: Call) => Call;
type Plan = (calls: { first: Make; other: Make; maker: Make }) => Call[][];
const plans: Record<string, { weight: number; plan: Plan }> = {
  redeem: { weight: 25, plan: ({ first }) => [[first("redeem")]] },
  "two redeem": { weight: 8, plan: ({ first, other }) => [[first("redeem"), other("redeem")]] },
  "lock, confirm": {
    weight: 18,
    plan({ first }) {
      const lock = first("lock");
      return [[lock], [first("confirm", lock)]];
    },
  },
  "lock, cancel": {
    weight: 7,
    plan({ first, other }) {
      const lock = first("lock");
      return [[lock], [first("cancel", lock)], [other("redeem")]];
    },
  },
  "cancel, lock": {
    weight: 3,
    plan({ first, other }) {
      const lock = first("lock");
      return [[first("cancel", lock)], [lock], [other("redeem")]];
    },
  },
  "two lock, confirm, reverse": {
    weight: 6,
    plan({ first, other }) {
      const lock = first("lock");
      const confirm = first("confirm", lock);
      return [[lock, other("lock")], [confirm], [first("reverse", confirm)]];
    },
  },
  "redeem, two reverse": {
    weight: 7,
    plan({ first, other }) {
      const redeem = first("redeem");
      return [[redeem], [first("reverse", redeem), first("reverse", redeem)], [other("redeem")]];
    },
  },
  "lock, confirm and cancel": {
    weight: 4,
    plan({ first, other }) {
      const lock = first("lock");
      return [
        [lock, other("lock")],
        [first("confirm", lock), first("cancel", lock)],
      ];
    },
  },
  "lock until its end": {
    weight: 3,
    plan({ first, other }) {
      const lock = first("lock");
      const pauses = Array.from({ length: 4 }, () => []);
      return [[lock], ...pauses, [first("confirm", lock), other("lock")]];
    },
  },
  void: { weight: 4, plan: ({ first }) => [[first("void")]] },
  "void and redeem": { weight: 4, plan: ({ first, other }) => [[first("void"), other("redeem")]] },
  query: { weight: 6, plan: ({ first, other }) => [[first("query"), other("query")]] },
  batch: {
    weight: 2,
    plan({ maker }) {
      const batch = maker("create_batch");
      // The empty steps are pauses, in which the batch is minted.
      return [[batch], [], [], [maker("allocate_batch", batch)]];
    },
  },
};
const weights = Object.fromEntries(Object.entries(plans).map(([name, { weight }]) => [name, weight]));

// Endless. coupons: those that each tenant redeems. A tenant without coupons calls nothing.
export function* generateWorkload(
  random: Random,
  coupons: Record<Variant, { code: string }[]>,
): Generator<Scenario, never> {
  const variants = (["A", "B"] as const).filter((variant) => coupons[variant].length > 0);
  let number = 0;
  const chooseCode = { A: createChoice(random, coupons.A), B: createChoice(random, coupons.B) };
  for (;;) {
    const variant = random.pick(variants);
    const coupon = chooseCode[variant]();
    const makeBy =
      ({ accessKey, merchant }: Till): Make =>
      (kind, about) => ({
        requestId: `c-${(number += 1)}`,
        variant,
        accessKey,
        kind,
        values: valuesOf(kind, { coupon, merchant, about, count: random.between(1, 20) }),
        needs: kind === "reverse" || kind === "allocate_batch" ? about!.requestId : null,
        idempotencyKey: random.next() < 0.2 ? `k-${number}` : null,
        again: random.weigh({ never: 88, "at once": 6, later: 6 }),
      });
    const { maker, tills } = tenants[variant];
    const [first, other] = random.shuffle(tills).map(makeBy) as [Make, Make];
    const byMaker = makeBy({ accessKey: maker, merchant: tills[0].merchant });
    const plan = plans[random.weigh(weights)]!.plan({ first, other, maker: byMaker });
    const addQuery = (calls: Call[]) =>
      random.next() < 0.3 ? [...calls, random.pick([first, other])("query")] : calls;
    const isAboutCoupon = plan[0]![0]!.kind !== "create_batch";
    const steps = isAboutCoupon ? plan.map(addQuery) : plan;
    yield { steps, pauseMs: () => random.between(20, 400) };
  }
}

type Subject = { coupon: string; merchant: string; about: Call | undefined; count: number };

// Half of the scenarios have their coupon alone. The others share it with the next few that other clients begin.
function createChoice(random: Random, coupons: { code: string }[]): () => string {
  let used = 0;
  const takeNext = () => coupons[(used += 1) % coupons.length]!.code;
  let shared = { code: "", left: 0 };
  return () => {
    if (random.next() < 0.5) return takeNext();
    if (shared.left === 0) shared = { code: takeNext(), left: sharers };
    shared.left -= 1;
    return shared.code;
  };
}

// The body of a call, without its request_id and what it learns from an answer.
function valuesOf(kind: Kind, { coupon, merchant, about, count }: Subject): Record<string, unknown> {
  switch (kind) {
    case "redeem":
    case "lock":
      return { coupon, merchant, order_amount: 20 };
    case "confirm":
      return { coupon, merchant, lock_request_id: about!.requestId };
    case "cancel":
      return { coupon, lock_request_id: about!.requestId };
    case "void":
    case "query":
      return { coupon, merchant };
    case "create_batch":
      return { template: usualTemplate, total_count: count };
    case "reverse":
    case "allocate_batch":
      return {};
  }
}

// Reproducible random numbers: the same seed produces the same sequence.
export type Random = ReturnType<typeof createRandom>;

export function createRandom(seed: number) {
  let state = seed >>> 0;
  // mulberry32: at least 0 and less than 1
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const between = (low: number, high: number): number => low + Math.floor(next() * (high - low + 1));
  return {
    next,
    between,
    pick: <T>(items: readonly T[]): T => items[between(0, items.length - 1)]!,
    // Picks a key with the probability of its weight.
    weigh<K extends string>(weights: Record<K, number>): K {
      const entries = Object.entries(weights) as [K, number][];
      let left = next() * entries.reduce((sum, [, weight]) => sum + weight, 0);
      return entries.find(([, weight]) => (left -= weight) < 0)?.[0] ?? entries[0]![0];
    },
    shuffle: <T>(items: readonly T[]): T[] =>
      items
        .map((item) => ({ item, at: next() }))
        .sort((a, b) => a.at - b.at)
        .map(({ item }) => item),
  };
}
