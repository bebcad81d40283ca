// Splits what callgrind counted into parts. The parts overlap: a trigger runs PL/pgSQL, which starts statements. What a
// part calls belongs to it.
import type { Profile } from "./callgrind.ts";

type Call = Profile["calls"][number];

// Without the name of the caller or the level, see callgrind.ts.
const base = (name: string): string => name.split("'")[0]!;
const inPlpgsql = (object: string): boolean => /plpgsql\./.test(object);

const intoFirst = (names: readonly string[]) => (call: Call) =>
  names.includes(base(call.to)) && !/'[2-9]/.test(call.to) && !names.includes(base(call.from));

// Whether an expression of PL/pgSQL makes the call, without a statement in between.
const isInExpression = (call: Call) => /'exec_(eval|assign|stmt)/.test(call.to);
const entersPlpgsql = (call: Call) => base(call.to) === "plpgsql_call_handler";
const startsStatement = (call: Call) =>
  (inPlpgsql(call.fromObject) && /^SPI_(execute|cursor)/.test(call.to)) ||
  (base(call.to) === "fmgr_sql" && isInExpression(call));

const writes = [
  "heap_insert",
  "heap_multi_insert",
  "heap_update",
  "heap_delete",
  "heap_lock_tuple",
  "index_insert",
  "XLogFlush",
];

// Of the instructions that `long` has more than `short`, each divided by `units`.
export function describeParts(short: Profile, long: Profile, units: number): Record<string, number> {
  const sum = (calls: Call[], matches: (call: Call) => boolean) =>
    calls.filter(matches).reduce((total, { count }) => total + count, 0);
  const more = (matches: (call: Call) => boolean) => (sum(long.calls, matches) - sum(short.calls, matches)) / units;
  return {
    all: (long.total - short.total) / units,
    "PL/pgSQL outside statements": more((call) => entersPlpgsql(call) && !isInExpression(call)) - more(startsStatement),
    triggers: more(intoFirst(["ExecCallTriggerFunc"])),
    "executor start": more(intoFirst(["standard_ExecutorStart"])),
    "function rights": more(intoFirst(["object_aclcheck", "object_aclcheck_ext"])),
    "physical writing": more(intoFirst(writes)),
  };
}
