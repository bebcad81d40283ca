// An edit of a file, and what is taken for what in SQL and in TypeScript.

export interface Edit {
  /** Offsets in the text of the file. */
  start: number;
  end: number;
  replacement: string;
  /** What kind of slip it is, for example `boundary`. */
  operator: string;
  /** No test can notice it, by a rule of its operator or by a mark in the code. */
  isEquivalent?: boolean;
}

/** Operators, each with the kind of slip. */
export const operators: Record<string, [string, string]> = {
  "<": ["<=", "boundary"],
  "<=": ["<", "boundary"],
  ">": [">=", "boundary"],
  ">=": [">", "boundary"],
  "=": ["<>", "comparison"],
  "<>": ["=", "comparison"],
  "===": ["!==", "comparison"],
  "!==": ["===", "comparison"],
  "+": ["-", "sign"],
  "-": ["+", "sign"],
  "+=": ["-=", "sign"],
  "-=": ["+=", "sign"],
  "*": ["/", "arithmetic"],
  "/": ["*", "arithmetic"],
  "%": ["*", "arithmetic"],
};

/** Functions and methods. */
export const calls: Record<string, string> = {
  bool_and: "bool_or",
  bool_or: "bool_and",
  ceil: "floor",
  clock_timestamp: "now",
  every: "some",
  find: "findLast",
  floor: "ceil",
  greatest: "least",
  lag: "lead",
  lead: "lag",
  least: "greatest",
  lower: "upper",
  max: "min",
  min: "max",
  once: "on",
  push: "unshift",
  round: "floor",
  shift: "pop",
  some: "every",
  endsWith: "startsWith",
  startsWith: "endsWith",
  statement_timestamp: "clock_timestamp",
  sum: "max",
  toLowerCase: "toUpperCase",
  toUpperCase: "toLowerCase",
  trunc: "ceil",
  upper: "lower",
};
