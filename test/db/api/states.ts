// The result of every operation on a coupon in every state, in both variants. states.test.ts generates its tests from
// this table, and docs/integrate.md shows it.
//
// A cell is the code of a refusal, or an arrow and the status of the coupon after a success. For query it is the status
// in the answer.
export const variants = ["A", "B"] as const;
export const operations = ["lock", "redeem", "confirm", "cancel", "reverse", "void", "query"] as const;
export const batchOperations = ["get", "allocate", "suspend", "resume", "recall", "export"] as const;

export type Variant = (typeof variants)[number];
export type Operation = (typeof operations)[number];
export type BatchOperation = (typeof batchOperations)[number];
type Status = "CREATED" | "ISSUED" | "LOCKED" | "REDEEMED" | "EXPIRED" | "VOIDED";
type BatchStatus = "PENDING" | "COMPLETED" | "ALLOCATED";
type Result<S extends string> = Refusal | `→ ${S}` | S;
type BatchResult = Result<BatchStatus> | `→ ${"suspended" | "resumed" | "recalled" | "exported"}`;
type Cell = Result<Status> | Record<Variant, Result<Status>>;
type Refusal =
  | "NOT_FOUND"
  | `LOCK_${"NOT_FOUND" | "EXPIRED" | "CANCELLED" | "CONFIRMED"}`
  | `COUPON_${"VOIDED" | "REDEEMED" | "EXPIRED" | "LOCKED" | "NOT_RELEASED" | "NOT_YET_VALID" | "NOT_VOIDABLE"}`
  | `REDEMPTION_${"NOT_REVERSIBLE" | "REVERSED"}`
  | `BATCH_${"SUSPENDED" | "NOT_COMPLETED" | "ALREADY_ALLOCATED"}`;

const unlocked = { confirm: "LOCK_NOT_FOUND", cancel: "LOCK_NOT_FOUND", reverse: "NOT_FOUND" } as const;
const redeemed = {
  lock: "COUPON_REDEEMED",
  redeem: "COUPON_REDEEMED",
  confirm: "LOCK_CONFIRMED",
  cancel: "LOCK_CONFIRMED",
  void: "COUPON_NOT_VOIDABLE",
  query: "REDEEMED",
} as const;
const expired = {
  lock: "COUPON_EXPIRED",
  redeem: "COUPON_EXPIRED",
  void: "COUPON_NOT_VOIDABLE",
  query: "EXPIRED",
} as const;

const stopped = { lock: "BATCH_SUSPENDED", redeem: "BATCH_SUSPENDED" } as const;

// confirm and cancel name the lock of the state, and reverse its redemption. In states without one, they name one that
// does not exist.
export const states = {
  "not released": {
    lock: "COUPON_NOT_RELEASED",
    redeem: "COUPON_NOT_RELEASED",
    ...unlocked,
    void: "→ VOIDED",
    query: { A: "ISSUED", B: "CREATED" },
  },
  "not yet valid": {
    lock: "COUPON_NOT_YET_VALID",
    redeem: "COUPON_NOT_YET_VALID",
    ...unlocked,
    void: "→ VOIDED",
    query: "ISSUED",
  },
  ISSUED: {
    lock: "→ LOCKED",
    redeem: "→ REDEEMED",
    ...unlocked,
    void: "→ VOIDED",
    query: "ISSUED",
  },
  "ISSUED, its lock cancelled": {
    lock: "→ LOCKED",
    redeem: "→ REDEEMED",
    confirm: "LOCK_CANCELLED",
    cancel: "LOCK_CANCELLED",
    reverse: "REDEMPTION_NOT_REVERSIBLE",
    void: "→ VOIDED",
    query: "ISSUED",
  },
  "ISSUED, its lock lapsed": {
    lock: "→ LOCKED",
    redeem: "→ REDEEMED",
    confirm: "LOCK_EXPIRED",
    cancel: "LOCK_EXPIRED",
    reverse: "REDEMPTION_NOT_REVERSIBLE",
    void: "→ VOIDED",
    query: "ISSUED",
  },
  "LOCKED by this lock": {
    lock: "COUPON_LOCKED",
    redeem: "COUPON_LOCKED",
    confirm: "→ REDEEMED",
    cancel: "→ ISSUED",
    reverse: "REDEMPTION_NOT_REVERSIBLE",
    void: "COUPON_NOT_VOIDABLE",
    query: "LOCKED",
  },
  "LOCKED by another": {
    lock: "COUPON_LOCKED",
    redeem: "COUPON_LOCKED",
    confirm: "LOCK_NOT_FOUND",
    cancel: "LOCK_NOT_FOUND",
    reverse: "REDEMPTION_NOT_REVERSIBLE",
    void: "COUPON_NOT_VOIDABLE",
    query: "LOCKED",
  },
  "LOCKED by this lock, past valid_to": {
    lock: "COUPON_EXPIRED",
    redeem: "COUPON_EXPIRED",
    confirm: "→ REDEEMED",
    cancel: "→ EXPIRED",
    reverse: "REDEMPTION_NOT_REVERSIBLE",
    void: "COUPON_NOT_VOIDABLE",
    query: "LOCKED",
  },
  REDEEMED: { ...redeemed, reverse: "→ REDEEMED" },
  "REDEEMED, reissuable": { ...redeemed, reverse: "→ ISSUED" },
  "REDEEMED, reissuable, past valid_to": { ...redeemed, reverse: "→ EXPIRED" },
  "REVERSED, consumed": { ...redeemed, reverse: "REDEMPTION_REVERSED" },
  "REVERSED, reissued": {
    lock: "→ LOCKED",
    redeem: "→ REDEEMED",
    confirm: "LOCK_CONFIRMED",
    cancel: "LOCK_CONFIRMED",
    reverse: "REDEMPTION_REVERSED",
    void: "→ VOIDED",
    query: "ISSUED",
  },
  EXPIRED: { ...expired, ...unlocked },
  "EXPIRED, its lock cancelled": {
    ...expired,
    confirm: "LOCK_CANCELLED",
    cancel: "LOCK_CANCELLED",
    reverse: "REDEMPTION_NOT_REVERSIBLE",
  },
  "EXPIRED, its lock lapsed": {
    ...expired,
    confirm: "LOCK_EXPIRED",
    cancel: "LOCK_EXPIRED",
    reverse: "REDEMPTION_NOT_REVERSIBLE",
  },
  VOIDED: {
    lock: "COUPON_VOIDED",
    redeem: "COUPON_VOIDED",
    ...unlocked,
    void: "COUPON_NOT_VOIDABLE",
    query: "VOIDED",
  },
  "ISSUED, suspended": { ...stopped, ...unlocked, void: "→ VOIDED", query: "ISSUED" },
  "LOCKED by this lock, suspended": {
    ...stopped,
    confirm: "→ REDEEMED",
    cancel: "→ ISSUED",
    reverse: "REDEMPTION_NOT_REVERSIBLE",
    void: "COUPON_NOT_VOIDABLE",
    query: "LOCKED",
  },
  "REDEEMED, suspended": { ...redeemed, ...stopped, reverse: "→ REDEEMED" },
  "LOCKED by this lock, recalled": {
    ...stopped,
    confirm: "→ REDEEMED",
    cancel: "→ VOIDED",
    reverse: "REDEMPTION_NOT_REVERSIBLE",
    void: "COUPON_NOT_VOIDABLE",
    query: "LOCKED",
  },
  "LOCKED by this lock, recalled, past valid_to": {
    ...stopped,
    confirm: "→ REDEEMED",
    cancel: "→ EXPIRED",
    reverse: "REDEMPTION_NOT_REVERSIBLE",
    void: "COUPON_NOT_VOIDABLE",
    query: "LOCKED",
  },
  "REDEEMED, reissuable, recalled": { ...redeemed, ...stopped, reverse: "→ VOIDED" },
} satisfies Record<string, Record<Operation, Cell>>;
export type State = keyof typeof states;

// After the arrow: what changes. Without one: the status in the answer, and nothing changes.
const batchStates = {
  PENDING: {
    get: "PENDING",
    allocate: "BATCH_NOT_COMPLETED",
    suspend: "→ suspended",
    resume: "PENDING",
    recall: "→ recalled",
    export: "BATCH_NOT_COMPLETED",
  },
  COMPLETED: {
    get: "COMPLETED",
    allocate: "→ ALLOCATED",
    suspend: "→ suspended",
    resume: "COMPLETED",
    recall: "→ recalled",
    export: "→ exported",
  },
  ALLOCATED: {
    get: "ALLOCATED",
    allocate: "BATCH_ALREADY_ALLOCATED",
    suspend: "→ suspended",
    resume: "ALLOCATED",
    recall: "→ recalled",
    export: "→ exported",
  },
  "COMPLETED, suspended": {
    get: "COMPLETED",
    allocate: "→ ALLOCATED",
    suspend: "COMPLETED",
    resume: "→ resumed",
    recall: "→ recalled",
    export: "→ exported",
  },
  "COMPLETED, recalled": {
    get: "COMPLETED",
    allocate: "BATCH_SUSPENDED",
    suspend: "COMPLETED",
    resume: "BATCH_SUSPENDED",
    recall: "COMPLETED",
    export: "BATCH_SUSPENDED",
  },
  "PENDING, recalled": {
    get: "PENDING",
    allocate: "BATCH_SUSPENDED",
    suspend: "PENDING",
    resume: "BATCH_SUSPENDED",
    recall: "PENDING",
    export: "BATCH_SUSPENDED",
  },
} satisfies Record<string, Record<BatchOperation, BatchResult>>;
export type BatchState = keyof typeof batchStates;
export const allBatchStates = Object.keys(batchStates) as BatchState[];

// The result in a cell: the code of a refusal, or the status of the coupon after a success.
export type Expected = { code: string; status?: never } | { status: string; code?: never };

export function expectedOf(state: State, operation: Operation, variant: Variant): Expected {
  const cell: Cell = states[state][operation];
  return read(typeof cell === "string" ? cell : cell[variant]);
}

/** The cell as it is. */
export const resultOfBatch = (state: BatchState, operation: BatchOperation): BatchResult =>
  batchStates[state][operation];

function read(result: string): Expected {
  if (result.startsWith("→ ")) return { status: result.slice(2) };
  return result.includes("_") ? { code: result } : { status: result };
}

// The two tables as docs/integrate.md shows them between its markers.
export function renderStates(): string {
  const show = (cell: Cell) =>
    typeof cell === "string" ? mark(cell) : variants.map((variant) => `${variant}: ${mark(cell[variant])}`).join(", ");
  const coupons = Object.entries<Record<Operation, Cell>>(states).map(([state, cells]) => [
    state,
    ...operations.map((operation) => show(cells[operation])),
  ]);
  const batches = Object.entries<Record<BatchOperation, string>>(batchStates).map(([state, cells]) => [
    state,
    ...batchOperations.map((operation) => mark(cells[operation])),
  ]);
  return `${table(["coupon", ...operations], coupons)}\n${table(["batch", ...batchOperations], batches)}`;
}

function mark(result: string): string {
  return "code" in read(result) ? `\`${result}\`` : result;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |\n`).join("");
}

// Prints the tables for docs/integrate.md: node test/db/api/states.ts
if (import.meta.main) process.stdout.write(renderStates());
