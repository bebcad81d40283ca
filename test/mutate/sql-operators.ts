// All slips in a file of SQL. A few do not load; judge.ts finds them.
import type { Edit } from "./mutant.ts";
import { mutateClause } from "./sql-clauses.ts";
import { mutateNode } from "./sql-expressions.ts";
import { readSql } from "./sql-source.ts";
import { removeStatements } from "./sql-statements.ts";

export function mutateSql(text: string): Edit[] {
  const source = readSql(text);
  const indexAt = new Map(source.tokens.map(({ start }, index) => [start, index]));
  return [
    ...source.nodes.flatMap((node) => {
      const index = indexAt.get(node.at);
      return index === undefined ? [] : mutateNode(source, node, index);
    }),
    ...source.tokens.flatMap((_, index) => mutateClause(source, index)),
    ...removeStatements(source),
  ];
}
