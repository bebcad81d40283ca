// What the clients do: stories about one coupon or batch each, drawn from the seed. Stages of a story follow each other;
// the calls of a stage are sent at once, so those of two tills meet.
import type { Random } from "./random.ts";
import { tenants, type Variant } from "./tenants.ts";

export type Kind =
  "redeem" | "lock" | "confirm" | "cancel" | "reverse" | "void" | "query" | "create_batch" | "allocate_batch";
export type Call = {
  requestId: string;
  variant: Variant;
  accessKey: string;
  merchant: string;
  kind: Kind;
  // Index in the pile of its tenant; -1: none.
  coupon: number;
  isShort: boolean;
  // The request_id of the call that it is about: a lock, a redemption, a batch.
  about: string | null;
  idempotencyKey: string | null;
  // The same call again under the same request_id, at once or some time later.
  again: "never" | "at once" | "later";
  count: number;
};
// pauses: milliseconds before each stage.
export type Story = { atMs: number; stages: Call[][]; pauses: number[] };

const plots = {
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
type Plot = keyof typeof plots;

// Without end, in the order of their time; perSecond: calls.
export function* tellStories(random: Random, perSecond: number): Generator<Story> {
  let number = 0;
  let atMs = 0;
  const used: Record<Variant, { usual: number; short: number }> = {
    A: { usual: 0, short: 0 },
    B: { usual: 0, short: 0 },
  };
  for (;;) {
    const story = tell(random.weigh(plots), random.pick(["A", "B"]));
    yield { atMs, ...story };
    atMs += (story.stages.flat().length * 1_000) / perSecond;
  }

  function tell(plot: Plot, variant: Variant): Omit<Story, "atMs"> {
    const { maker, tills } = tenants[variant];
    const [till, other] = random.shuffle(tills) as typeof tills;
    const isShort = plot === "confirm too late";
    const pile = used[variant];
    const isOfCoupon = plot !== "batch";
    const coupon = isOfCoupon ? (isShort ? pile.short++ : pile.usual++) : -1;
    const call = (kind: Kind, about: Call | null = null, seat = till): Call => ({
      requestId: `c-${(number += 1)}`,
      variant,
      kind,
      coupon,
      isShort,
      accessKey: isOfCoupon ? seat.accessKey : maker,
      merchant: seat.merchant,
      about: about?.requestId ?? null,
      idempotencyKey: random.next() < 0.2 ? `k-${number}` : null,
      again: random.weigh({ never: 88, "at once": 6, later: 6 }),
      count: random.between(1, 20),
    });
    const pause = () => random.between(20, 400);
    const inTurn = (...stages: Call[][]) => ({ stages, pauses: stages.map((_, index) => (index === 0 ? 0 : pause())) });
    switch (plot) {
      case "redeem":
      case "void":
      case "query":
        return inTurn([call(plot)]);
      case "two redeem":
        return inTurn([call("redeem"), call("redeem", null, other)]);
      case "void and redeem":
        return inTurn([call("void"), call("redeem", null, other)]);
      case "batch": {
        const batch = call("create_batch");
        return { stages: [[batch], [call("allocate_batch", batch)]], pauses: [0, 3_000] };
      }
      case "redeem, two reverse": {
        const redeem = call("redeem");
        return inTurn([redeem], [call("reverse", redeem), call("reverse", redeem)], [call("redeem", null, other)]);
      }
      case "cancel first": {
        const lock = call("lock");
        return inTurn([call("cancel", lock)], [lock], [call("redeem", null, other)]);
      }
    }
    const lock = call("lock");
    if (plot === "lock, cancel") return inTurn([lock], [call("cancel", lock)], [call("redeem", null, other)]);
    const confirm = call("confirm", lock);
    if (plot === "lock, confirm, reverse")
      return inTurn([lock, call("lock", null, other)], [confirm], [call("reverse", confirm)]);
    if (plot === "confirm too late") return { stages: [[lock], [confirm]], pauses: [0, 1_100] };
    return inTurn([lock], [confirm]);
  }
}
