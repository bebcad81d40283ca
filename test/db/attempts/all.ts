// Everything that a superuser in psql attempts against the tables, with the rule that must refuse it.
import { batchAttempts, keyAttempts, templateAttempts } from "./batches.ts";
import { couponAttempts } from "./coupons.ts";
import { deliveryAttempts } from "./deliveries.ts";
import { eventAttempts, feedAttempts, statementAttempts } from "./events.ts";
import { credentialAttempts, identityAttempts, recordAttempts } from "./identities.ts";
import { ledgerAttempts, redemptionAttempts } from "./redemptions.ts";

export type Attempt = { rule: string; attempted: string; sql: string };

export const attempts: Attempt[] = [
  couponAttempts,
  redemptionAttempts,
  ledgerAttempts,
  batchAttempts,
  keyAttempts,
  templateAttempts,
  eventAttempts,
  feedAttempts,
  deliveryAttempts,
  statementAttempts,
  identityAttempts,
  credentialAttempts,
  recordAttempts,
].flatMap((subject) =>
  Object.entries(subject).flatMap(([rule, tried]) =>
    Object.entries(tried).map(([attempted, sql]) => ({ rule, attempted, sql })),
  ),
);
