// Each documented number, one less and one more; see test/docs/limits.
import type { Place } from "../docs/limits/limit.ts";
import { limits } from "../docs/limits/table.ts";
import { edit, type Sabotage } from "./sabotage.ts";

const change = ({ file, before, number, after }: Place, by: number): Sabotage["edits"] => {
  const changed = String(Number(number.replaceAll("_", "")) + by);
  return [edit(file, before + number + after, before + changed + after)];
};

// Timestamps and signatures of another length, or longer nonces, would shut out every client: then nothing works, and a
// failure proves nothing.
const shutsOutAll = (place: Place, by: number) =>
  place.file === "src/crypto/request-signature.ts" &&
  (place.before.startsWith("/^[0-9") || (place.number === "16" && by > 0));

// Limits that a test only bounds are not among them: a step of one is too small for it.
export const numberGuards: Sabotage[] = limits
  .filter(({ test }) => test.how === "pins")
  .flatMap(({ places, test }) =>
    places.flatMap((place) =>
      [-1, 1]
        .filter((by) => !shutsOutAll(place, by))
        .map((by) => ({
          name: `number ${by === 1 ? "+" : "-"} 1: ${place.file}: ${place.before}«${place.number}»${place.after}`,
          edits: change(place, by),
          tests: [test.file],
          mayThrow: true,
        })),
    ),
  );
