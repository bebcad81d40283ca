// A short form of `npm run model`, with a new seed each time.
import t from "tap";
import { search } from "./search.ts";
import { openService } from "./service.ts";

const lives = 15;
// On a busy machine there are fewer lives instead of a timeout.
const withinMs = 40_000;

for (const variant of ["A", "B"] as const) {
  t.test(`Variant ${variant}: any calls in any order get the answers, events and amounts of the model`, async (t) => {
    const service = await openService(t, variant, 30);
    const seed = Date.now() % 1_000_000_000;
    const { steps, failures, ...found } = await search(service, { lives, seed, withinMs });
    t.comment(`${found.lives} lives of ${steps} steps, seed ${seed}`);
    t.strictSame(failures, [], `seed ${seed}`);
    await service.close();
  });
}
