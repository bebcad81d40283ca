// The alerts of docs/operate.md, evaluated against one scrape as Prometheus would. It knows only the forms that the
// table uses, and throws at another one.
import { readFileSync } from "node:fs";
import path from "node:path";
import { root } from "./copy.ts";

const [, table = ""] = /\n## Alerts\n([^]*?)\n## /.exec(readFileSync(path.join(root, "docs/operate.md"), "utf8")) ?? [];

/** The expressions in the first column. Rows whose first cell is a sentence are rates, which need two scrapes. */
export const alerts = [...table.matchAll(/^\| ((?:`[^`]+`(?:, )?)+) \|/gm)].flatMap(([, cell = ""]) =>
  [...cell.matchAll(/`([^`]+)`/g)].map(([, expression = ""]) => expression),
);

/** Returns the expressions that fire. */
export function findFiring(samples: Map<string, number>, now = Date.now() / 1_000): string[] {
  return alerts.filter((expression) => fires(expression, samples, now));
}

function fires(expression: string, samples: Map<string, number>, now: number): boolean {
  const valuesOf = (name: string) =>
    [...samples].filter(([key]) => key === name || key.startsWith(`${name}{`)).map(([, value]) => value);
  const absent = /^absent\((\w+)\)$/.exec(expression);
  if (absent !== null) return valuesOf(absent[1]!).length === 0;
  const [, isAge, , plain, maximum, operator, limit] =
    /^(time\(\) - )?((\w+)|max\((\w+)\)) (==|>) (\d+(?:\*\d+)?)$/.exec(expression) ?? [];
  if (limit === undefined) throw new Error(`cannot evaluate the alert ${expression}`);
  const found = valuesOf((plain ?? maximum)!);
  const values = maximum === undefined || found.length === 0 ? found : [Math.max(...found)];
  const bound = limit.split("*").reduce((product, factor) => product * Number(factor), 1);
  return values
    .map((value) => (isAge === undefined ? value : now - value))
    .some((value) => (operator === "==" ? value === bound : value > bound));
}
