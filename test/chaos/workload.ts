// The workload: scenarios about one coupon or one batch each, drawn from the seed. The steps of a scenario follow each
// other; the calls of a step are sent at the same time, so that calls of two tills race.
import type { Random } from "./random.ts";
import { tenants, type Till, type Variant } from "./tenants.ts";

export type Kind =
  "redeem" | "lock" | "confirm" | "cancel" | "reverse" | "void" | "query" | "create_batch" | "allocate_batch";
export type Call = {
  requestId: string;
  variant: Variant;
  accessKey: string;
  merchant: string;
  kind: Kind;
  // Index in the tenant's coupon pool; -1 for none.
  coupon: number;
  isShort: boolean;
  // The request_id of the lock, redemption or batch that this call refers to.
  about: string | null;
  idempotencyKey: string | null;
  // When the same call is sent again under the same request_id.
  again: "never" | "at once" | "later";
  count: number;
};
// pauses: milliseconds before each step.
export type Scenario = { atMs: number; steps: Call[][]; pauses: number[] };

const weights = {
  redeem: 22,
  "two redeem": 8,
  "lock, confirm": 18,
  "lock, cancel": 7,
  "lock, confirm, reverse": 6,
  "redeem, two reverse": 7,
  void: 4,
  "void and redeem": 4,
  "confirm too late": 3,
  query: 9,
  "cancel first": 3,
  batch: 1,
} as const;
type ScenarioName = keyof typeof weights;
type Plan = Omit<Scenario, "atMs">;
type MakeCall = (kind: Kind, about?: Call | null, till?: Till) => Call;

// Endless, in the order of their time. perSecond counts calls.
export function* generateWorkload(random: Random, perSecond: number): Generator<Scenario> {
  let number = 0;
  let atMs = 0;
  const used: Record<Variant, { usual: number; short: number }> = {
    A: { usual: 0, short: 0 },
    B: { usual: 0, short: 0 },
  };
  for (;;) {
    const scenario = draw(random.weigh(weights), random.pick(["A", "B"]));
    yield { atMs, ...scenario };
    atMs += (scenario.steps.flat().length * 1_000) / perSecond;
  }

  function draw(name: ScenarioName, variant: Variant): Plan {
    const { maker, tills } = tenants[variant];
    const [first, other] = random.shuffle(tills) as [Till, Till];
    const isShort = name === "confirm too late";
    const isOfCoupon = name !== "batch";
    const pool = used[variant];
    const coupon = isOfCoupon ? (isShort ? pool.short++ : pool.usual++) : -1;
    const call: MakeCall = (kind, about = null, till = first) => ({
      requestId: `c-${(number += 1)}`,
      variant,
      kind,
      coupon,
      isShort,
      accessKey: isOfCoupon ? till.accessKey : maker,
      merchant: till.merchant,
      about: about?.requestId ?? null,
      idempotencyKey: random.next() < 0.2 ? `k-${number}` : null,
      again: random.weigh({ never: 88, "at once": 6, later: 6 }),
      count: random.between(1, 20),
    });
    return planScenario(name, call, other, (steps) => ({
      steps,
      pauses: steps.map((_, index) => (index === 0 ? 0 : random.between(20, 400))),
    }));
  }
}

function planScenario(name: ScenarioName, call: MakeCall, other: Till, inTurn: (steps: Call[][]) => Plan): Plan {
  switch (name) {
    case "redeem":
    case "void":
    case "query":
      return inTurn([[call(name)]]);
    case "two redeem":
      return inTurn([[call("redeem"), call("redeem", null, other)]]);
    case "void and redeem":
      return inTurn([[call("void"), call("redeem", null, other)]]);
    case "batch": {
      const batch = call("create_batch");
      return { steps: [[batch], [call("allocate_batch", batch)]], pauses: [0, 3_000] };
    }
    case "redeem, two reverse": {
      const redeem = call("redeem");
      return inTurn([[redeem], [call("reverse", redeem), call("reverse", redeem)], [call("redeem", null, other)]]);
    }
    case "cancel first": {
      const lock = call("lock");
      return inTurn([[call("cancel", lock)], [lock], [call("redeem", null, other)]]);
    }
    case "lock, cancel": {
      const lock = call("lock");
      return inTurn([[lock], [call("cancel", lock)], [call("redeem", null, other)]]);
    }
    case "lock, confirm": {
      const lock = call("lock");
      return inTurn([[lock], [call("confirm", lock)]]);
    }
    case "confirm too late": {
      const lock = call("lock");
      return { steps: [[lock], [call("confirm", lock)]], pauses: [0, 1_100] };
    }
    case "lock, confirm, reverse": {
      const lock = call("lock");
      const confirm = call("confirm", lock);
      return inTurn([[lock, call("lock", null, other)], [confirm], [call("reverse", confirm)]]);
    }
  }
}
