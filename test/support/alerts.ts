// The alerts of docs/operate.md, evaluated against scrapes as Prometheus would. It knows only the forms that the table
// uses, and throws at another one.
import { readFileSync } from "node:fs";
import path from "node:path";
import { root } from "./copy.ts";

type Samples = Map<string, number>;

const [, table = ""] = /\n## Alerts\n([^]*?)\n## /.exec(readFileSync(path.join(root, "docs/operate.md"), "utf8")) ?? [];

export const alerts = [...table.matchAll(/^\| (\w+) \| `([^`]+)` \|/gm)].map(([, name = "", expression = ""]) => ({
  name,
  expression,
}));

/** Returns the names of the alerts that fire. Rates compare with the scrape `before`. */
export function findFiring(samples: Samples, { now = Date.now() / 1_000, before = samples } = {}): string[] {
  const increaseOf = (selector: string) => sum(select(samples, selector)) - sum(select(before, selector));
  const fires = (expression: string): boolean => {
    const [, absent] = /^absent\((\w+)\)$/.exec(expression) ?? [];
    if (absent !== undefined) return select(samples, absent).length === 0;
    const [, increased] = /^sum\(increase\((.+)\[\w+\]\)\) > 0$/.exec(expression) ?? [];
    if (increased !== undefined) return increaseOf(increased) > 0;
    const [, part, share, whole] =
      /^sum\(rate\((.+)\[5m\]\)\) > (.+) \* sum\(rate\((.+)\[5m\]\)\)$/.exec(expression) ?? [];
    if (whole !== undefined) return increaseOf(part!) > Number(share) * increaseOf(whole);
    const [, isAge, selector, operator, limit] =
      /^(time\(\) - )?(?:max(?: by \(\w+\) )?\()?(\w+(?:\{[^}]+\})?)\)? (==|>) (\d+(?:\*\d+)?)$/.exec(expression) ?? [];
    if (limit === undefined) throw new Error(`cannot evaluate the alert ${expression}`);
    const bound = limit.split("*").reduce((product, factor) => product * Number(factor), 1);
    const found = select(samples, selector!);
    const maximum = found.length > 0 && expression.includes("max(") ? [Math.max(...found)] : found;
    const values = maximum.map((value) => (isAge === undefined ? value : now - value));
    return values.some((value) => (operator === "==" ? value === bound : value > bound));
  };
  return alerts.filter(({ expression }) => fires(expression)).map(({ name }) => name);
}

const sum = (values: number[]): number => values.reduce((total, value) => total + value, 0);

/** The values of `name` or `name{label="value",label=~"pattern"}`. */
function select(samples: Samples, selector: string): number[] {
  const [, name = "", labels = ""] = /^(\w+)(?:\{(.*)\})?$/.exec(selector) ?? [];
  const matchers = [...labels.matchAll(/(\w+)=(~?)"([^"]*)"/g)].map(
    ([, label, isPattern, value = ""]) =>
      new RegExp(`[{,]${label}="${isPattern ? value : value.replace(/[^\w]/g, "\\$&")}"`),
  );
  return [...samples]
    .filter(([key]) => key.split("{")[0] === name && matchers.every((matcher) => matcher.test(key)))
    .map(([, value]) => value);
}
