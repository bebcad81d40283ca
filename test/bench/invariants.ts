// The last step of every benchmark: sequence every committed event, then check that no invariant is broken.
import { openSession } from "../../src/database/connect.ts";
import type { Address } from "../../src/common/database-address.ts";
import { findBrokenInvariants } from "../support/inspect.ts";
import { sequenceEvents } from "../support/sequence-events.ts";

export async function checkInvariants(address: Address): Promise<void> {
  await sequenceAll(address);
  const session = openSession(address, { name: "coupon bench invariants" });
  try {
    // Without statistics a query over these tables may take hours.
    await session.run("set work_mem = '256MB'; analyze");
    const broken = await findBrokenInvariants(session);
    if (broken.length > 0) throw new Error(`broken invariants: ${broken.join("; ")}`);
  } finally {
    await session.end();
  }
}

export async function sequenceAll(address: Address): Promise<void> {
  const session = openSession(address, { name: "coupon bench sequencer", role: "coupon_owner" });
  try {
    await sequenceEvents(session);
  } finally {
    await session.end();
  }
}
