// What every bench ends with: all that was committed is sequenced, and no law of the system is broken.
import { openSession } from "../../src/database/connect.ts";
import type { Address } from "../../src/common/database-address.ts";

export async function checkLaws(address: Address): Promise<void> {
  await sequenceAll(address);
  const session = openSession(address, { name: "coupon bench laws" });
  try {
    // Without statistics a plan over these tables may take hours.
    await session.run("set work_mem = '256MB'; analyze");
    const broken = await session.rows<{ found: string }>(
      "select format('%s (%s %s)', law, tenant, subject) as found from report.invariants limit 20",
    );
    if (broken.length > 0) throw new Error(`laws broken in the end: ${broken.map(({ found }) => found).join("; ")}`);
  } finally {
    await session.end();
  }
}

// As a worker does it, in larger steps. Another sequencer that is at work is waited for.
export async function sequenceAll(address: Address): Promise<void> {
  const session = openSession(address, { name: "coupon bench laws", role: "coupon_owner" });
  try {
    for (;;) {
      const [step] = await session.rows<{ is_drained: boolean; sequenced: number }>(
        "select sequenced, is_drained from jobs.sequence_events(10000)",
      );
      if (step!.is_drained && step!.sequenced === 0) return;
    }
  } finally {
    await session.end();
  }
}
