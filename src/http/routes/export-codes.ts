import { z } from "zod";
import { externalId } from "../fields.ts";
import type { Route } from "../route.ts";

const about = "The party whose public key encrypts. Needed if both the maker and the distributor have one.";

const inVariantA = z.strictObject({ batch: externalId, party: externalId.optional().describe(about) });
const inVariantB = z.strictObject({ batch: externalId });

export const exportCodes: Route = {
  operation: "export_codes",
  summary: "Downloads the codes of a batch as CSV, encrypted to your public key.",
  description:
    "The format is age (age-encryption.org): `age -d` reads the file. The maker can fetch the codes once the " +
    "batch is COMPLETED, the distributor once it is ALLOCATED. Each download is in the audit log.",
  method: "GET",
  path: "/v1/batches/{batch}/codes",
  query: ["party"],
  isWrite: false,
  hasOwnTransaction: true,
  download: "codes",
  schema: (variant) => (variant === "A" ? inVariantA : inVariantB),
  answer: () => z.string(),
  refusals: () => ["BATCH_SUSPENDED", "COUPON_NOT_RELEASED", "BATCH_NOT_COMPLETED", "CODES_DESTROYED", "NO_PUBLIC_KEY"],
  resources: () => ["batch"],
};
