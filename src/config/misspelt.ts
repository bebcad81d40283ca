// Finds settings that are probably misspelt: without this, they would silently have no effect.
import { consoleSettings, programSettings, serveSettings, workSettings } from "./settings.ts";

const secrets = ["WEBHOOK_SECRET", "CREDENTIAL_SECRET"];
const settings: readonly string[] = [
  ...programSettings,
  ...serveSettings,
  ...workSettings,
  ...consoleSettings,
  ...secrets,
];

/** Returns a sentence for each variable that is nearly the name of a setting. */
export function findMisspelt(env: Record<string, string | undefined>): string[] {
  const known = new Set(settings);
  const names = Object.keys(env).filter((name) => env[name]?.trim() && !known.has(name));
  return names.flatMap((name) => {
    const near = settings.find((setting) => isNear(reduce(name), reduce(setting)));
    return near === undefined ? [] : [`${name} is not a setting; did you mean ${near}?`];
  });
}

const reduce = (name: string): string =>
  name
    .toUpperCase()
    .replace(/[^A-Z0-9]/g, "")
    .replace(/^COUPON/, "");

// Short names such as PORT and HOST are near to many variables of other programs.
function isNear(name: string, setting: string): boolean {
  if (setting.length < 7) return false;
  return name === setting || countEdits(name, setting) <= (setting.length < 12 ? 1 : 2);
}

/** The letters to add, remove, replace or swap with the next one (the optimal string alignment distance). */
function countEdits(from: string, to: string): number {
  const rows = [Array.from({ length: to.length + 1 }, (_, index) => index)];
  for (let i = 1; i <= from.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= to.length; j += 1) {
      const replaced = rows[i - 1]![j - 1]! + (from[i - 1] === to[j - 1] ? 0 : 1);
      const isSwapped = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1];
      const swapped = isSwapped ? rows[i - 2]![j - 2]! + 1 : Infinity;
      row.push(Math.min(replaced, swapped, row[j - 1]! + 1, rows[i - 1]![j]! + 1));
    }
    rows.push(row);
  }
  return rows[from.length]![to.length]!;
}
