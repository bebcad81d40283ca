// mint: how long a maker waits for a batch, from the answer to its order until it is COMPLETED, and how many coupons
// are minted in a second of that time.
import type { Run } from "./environment.ts";
import { median, timed, type Row } from "./measure.ts";

export async function benchMint({ open, size, rounds }: Run): Promise<Row[]> {
  const { submit, untilMinted } = await open();
  const rows: Row[] = [];
  for (const count of [Math.ceil(size / 10), size]) {
    const seconds: number[] = [];
    for (let number = 0; number <= rounds; number += 1) {
      const batch = await submit(count);
      const took = await timed(() => untilMinted(batch));
      // The first round is a warm-up.
      if (number > 0) seconds.push(took);
    }
    rows.push({
      name: `a batch of ${count}`,
      "until COMPLETED ms": median(seconds) * 1_000,
      "coupons/s": count / median(seconds),
    });
  }
  return rows;
}
