// The slip of a forgotten statement in PL/pgSQL.
import type { Edit } from "./mutant.ts";
import type { SqlSource } from "./sql-source.ts";

const openers = new Set(["begin", ";", "then", "else", "loop"]);
/** Begin a statement that holds others, end one, or have no effect. */
const others = new Set(
  "if elsif else end case loop while for foreach begin declare exception when return null".split(" "),
);

/** Replaces each simple statement with `null;`. A lost `return` is an error, so it is no slip, except before others. */
export function removeStatements({ tokens, bodies }: SqlSource): Edit[] {
  return bodies
    .filter(({ isPlPgSql }) => isPlPgSql)
    .flatMap(({ start, end }) => {
      const inside = tokens.filter((token) => token.start >= start && token.end <= end);
      const edits: Edit[] = [];
      let at = inside.findIndex(({ text }) => text === "begin");
      while (at !== -1 && at + 1 < inside.length) {
        const first = inside[at + 1]!;
        const isOpener = openers.has(inside[at]!.text) && inside[at - 1]?.text !== "end";
        if (!isOpener || others.has(first.text)) {
          at += 1;
          continue;
        }
        const last = inside.findIndex(({ text, depth }, index) => index > at && text === ";" && depth === first.depth);
        if (last === -1) break;
        edits.push({ start: first.start, end: inside[last]!.end, replacement: "null;", operator: "statement" });
        at = last;
      }
      return edits;
    });
}
