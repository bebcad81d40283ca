// The shape of a provisioning file (npm run apply). This schema checks what one file can show by itself: fields,
// formats and duplicates. admin.apply checks what needs the stored state (references, forbidden changes, the decimals
// of a currency) and reports issues with the same kind of paths.
import { z } from "zod";
import { eventTypes } from "../formats/event-types.ts";
import { listIssues } from "../http/issues.ts";
import type { Issue } from "../http/problem.ts";
import { accessKey, amount, currency, positiveAmount, printable, timestamp } from "../formats/field-types.ts";

const id = (prefix: string) =>
  z.string().regex(new RegExp(`^${prefix}_[a-z0-9]{1,40}$`), `must be ${prefix}_ and 1 to 40 of a-z 0-9`);
const party = id("pty");

// The database stores four decimals. A tiny number prints with an exponent, so this pattern refuses it too.
const percent = z
  .number()
  .gt(0)
  .max(100)
  .refine((value) => /^\d{1,3}(\.\d{1,4})?$/.test(String(value)), "must have at most 4 decimals");

const timeZone = z.string().refine(isTimeZone, "must be UTC or an IANA time zone with a region, such as Europe/Berlin");

// The result is the URL as its parser writes it. The constraint url_is_http accepts that form only.
const webhookUrl = z.string().transform(parseWebhookUrl).pipe(z.string().max(2048));

const webhookSecret = z.string().refine(isWebhookSecret, "must be whsec_ and the base64 of 24 to 64 bytes");

const webhook = z.strictObject({
  url: webhookUrl,
  secret: webhookSecret.optional(),
  expand: z.boolean().default(false),
  // An empty list could mean none or all, so it is refused. Leaving the field out means all.
  event_types: unique(z.array(z.enum(eventTypes)).min(1), (type) => type).optional(),
});

const discount = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("fixed"), amount: positiveAmount }),
  z.strictObject({ type: z.literal("percent"), percent, max_amount: positiveAmount.optional() }),
]);

const store = z.strictObject({
  external_id: printable(64),
  terminals: unique(z.array(printable(64)), (terminal) => terminal).default([]),
});

const stores = unique(z.array(store), (value) => value.external_id, "external_id");

const merchant = z
  .strictObject({
    id: id("mch"),
    name: printable(200),
    party,
    delegates: unique(z.array(party), (value) => value).optional(),
    stores: stores.optional(),
    stores_added: stores.optional(),
  })
  .refine((value) => value.stores === undefined || value.stores_added === undefined, {
    path: ["stores_added"],
    error: "cannot stand beside stores, which is the whole list",
  });

const template = z
  .strictObject({
    id: id("tpl"),
    name: printable(200),
    maker: party,
    distributor: party.optional(),
    currency,
    discount,
    min_order_amount: amount.optional(),
    // An empty list could mean none or all, so it is refused. Leaving the field out means all.
    skus: unique(z.array(printable(64)).min(1), (sku) => sku).optional(),
    merchants: unique(z.array(id("mch")).min(1), (merchant) => merchant).optional(),
    valid_from: timestamp,
    valid_to: timestamp,
    lock_ttl_seconds: z.int().min(1).max(604_800).default(900),
    after_reversal: z.enum(["consumed", "reissued"]).default("consumed"),
  })
  .refine((value) => Date.parse(value.valid_from) < Date.parse(value.valid_to), {
    path: ["valid_to"],
    error: "must be later than valid_from",
  });

const tenant = z
  .strictObject({
    id: id("ten"),
    name: printable(200),
    variant: z.enum(["A", "B"]),
    amount_unit: z.enum(["major", "minor"]).default("major"),
    // Without it, a new tenant is none, and an existing one stays what it is.
    sandbox: z.boolean().optional(),
    parties: unique(
      z.array(
        z.strictObject({
          id: party,
          name: printable(200),
          time_zone: timeZone.optional(),
          // null takes the key away. `apply` checks it.
          public_key: z.string().nullable().optional(),
          webhook: webhook.optional(),
        }),
      ),
      (value) => value.id,
      "id",
    ).default([]),
    merchants: unique(z.array(merchant), (value) => value.id, "id").default([]),
    templates: unique(z.array(template), (value) => value.id, "id").default([]),
    credentials: z
      .array(
        z.strictObject({
          access_key: accessKey,
          secret: printable(256, 32).optional(),
          party: party.optional(),
        }),
      )
      .default([]),
  })
  .superRefine((value, context) => {
    value.credentials.forEach((credential, index) => {
      const path = ["credentials", index, "party"];
      if (value.variant === "B" && credential.party === undefined)
        context.addIssue({ code: "custom", path, message: "is required in variant B" });
      if (value.variant === "A" && credential.party !== undefined)
        context.addIssue({
          code: "custom",
          path,
          message: "is allowed in variant B only: a credential of variant A belongs to its tenant",
        });
    });
  });

export const provisioning = z
  .strictObject({ tenants: unique(z.array(tenant).min(1), (value) => value.id, "id") })
  .superRefine((value, context) => {
    // An access key is unique across the whole service, not only within its tenant.
    const seen = new Set<string>();
    value.tenants.forEach((one, tenantIndex) => {
      one.credentials.forEach((credential, index) => {
        if (seen.has(credential.access_key)) {
          context.addIssue({
            code: "custom",
            path: ["tenants", tenantIndex, "credentials", index, "access_key"],
            message: "is a duplicate in this file",
          });
        }
        seen.add(credential.access_key);
      });
    });
  });

export type Provisioning = z.infer<typeof provisioning>;

/** The file is wrong. `issues` lists the fields. */
export class ApplyError extends Error {
  readonly issues: Issue[];
  constructor(issues: Issue[]) {
    super(issues.map((issue) => `${issue.path}: ${issue.message}`).join("\n"));
    this.issues = issues;
  }
}

export function readProvisioning(file: unknown): Provisioning {
  const parsed = provisioning.safeParse(file);
  if (!parsed.success) throw new ApplyError(listIssues(parsed.error, file));
  return parsed.data;
}

function unique<T>(list: z.ZodArray<z.ZodType<T>>, key: (value: T) => string, field?: string) {
  return list.superRefine((values, context) => {
    const seen = new Set<string>();
    values.forEach((value, index) => {
      if (seen.has(key(value))) {
        context.addIssue({
          code: "custom",
          path: field === undefined ? [index] : [index, field],
          message: "is a duplicate in this list",
        });
      }
      seen.add(key(value));
    });
  });
}

function isTimeZone(value: string): boolean {
  // Intl accepts "+02:00", and PostgreSQL treats CET as such an offset. An offset is not a zone: it has no daylight
  // saving time.
  // equivalent mutant (literal /^[A-Za-z]/): Intl refuses every other name that begins with no letter
  if (!/^[A-Za-z]/.test(value) || (/^[A-Za-z]+$/.test(value) && value !== "UTC")) return false;
  try {
    new Intl.DateTimeFormat(undefined, { timeZone: value });
    return true;
  } catch {
    return false;
  }
}

function parseWebhookUrl(value: string, context: z.RefinementCtx): string {
  const url = URL.parse(value);
  const isRight =
    url !== null &&
    (url.protocol === "https:" || url.protocol === "http:") &&
    url.username === "" &&
    url.password === "" &&
    url.port !== "0";
  if (isRight) return url.href;
  context.addIssue({ code: "custom", message: "must be an http or https URL without a user name, and not of port 0" });
  return z.NEVER;
}

function isWebhookSecret(value: string): boolean {
  if (!value.startsWith("whsec_")) return false;
  const encoded = value.slice("whsec_".length);
  const bytes = Buffer.from(encoded, "base64");
  // Buffer.from skips invalid characters, so only a text that survives the round trip is valid base64.
  return bytes.length >= 24 && bytes.length <= 64 && bytes.toString("base64") === encoded;
}
