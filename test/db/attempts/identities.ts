// Attempts on tenants and their parties, merchants, credentials and webhooks; on recorded requests and on the
// tables of facts.
import { insertCopy, together, update, type Attempts } from "./statements.ts";

const insertTenant = (variant: string, unit: string) => `
  insert into core.tenant (external_id, name, variant, amount_unit)
  values ('ten_c', 'c', '${variant}', '${unit}')`;
const insertCredential = (accessKey: string, changes: Record<string, string>) =>
  insertCopy("credential", `access_key = '${accessKey}'`, { credential_id: "999", ...changes });
const insertRequest = (changes: Record<string, string>) =>
  insertCopy("request", "true", { idempotency_key: "null", ...changes });

// Tables whose rows a provisioning file names.
const named = [
  ["tenant", "ten"],
  ["party", "pty"],
  ["merchant", "mch"],
  ["template", "tpl"],
] as const;
const unused = (table: string) => (table === "template" ? "external_id = 'tpl_unused'" : "true");
const insertOther = (table: string, changes: Record<string, string> = {}) =>
  insertCopy(table, "true", { [`${table}_id`]: "999", ...changes });

const namedAttempts: Attempts[] = named.map(([table, prefix]) => ({
  identity_is_fixed: {
    [`another ID for a ${table}`]: update(table, `external_id = '${prefix}_new'`, unused(table)),
    [`another key for a ${table}`]: update(table, `${table}_id = default`, unused(table)),
  },
  [`${table}_external_id_is_well_formed`]: {
    "an ID with another prefix": insertOther(table, { external_id: "'red_1'" }),
    "an ID that is only a prefix": insertOther(table, { external_id: `'${prefix}'` }),
    "an ID in capitals": insertOther(table, { external_id: `'${prefix.toUpperCase()}_1'` }),
  },
  [table === "tenant" ? "tenant_external_id_key" : `${table}_external_id_tenant_id_key`]: {
    "the ID of another": insertOther(table),
  },
  [`${table}_name_is_1_to_200_characters`]: {
    "an empty name": update(table, "name = ''", unused(table)),
    "a long name": update(table, "name = repeat('x', 201)", unused(table)),
  },
}));

const identityAttempts: Attempts = {
  identity_is_fixed: { "a merchant moved to another tenant": update("merchant", "tenant_id = tenant_id + 1") },
  variant_is_known: { "a third variant": insertTenant("C", "major") },
  amount_unit_is_known: { "a third unit": insertTenant("A", "cents") },
  variant_and_unit_are_fixed_in_use: {
    "the other variant": update("tenant", "variant = 'B'", "external_id = 'ten_a'"),
    "the other unit": update("tenant", "amount_unit = 'minor'"),
  },
  time_zone_is_no_abbreviation: {
    "an abbreviation of a time zone": update("party", "time_zone = 'CET'"),
    "a time zone in lower case without a region": update("party", "time_zone = 'utc'"),
  },
  merchant_id_is_unique: {
    "the key of another tenant's merchant": insertCopy("merchant", "true", {
      tenant_id: "999",
      external_id: "'mch_n'",
    }),
  },
  store_external_id_is_1_to_64_characters: { "a store with an empty ID": update("store", "external_id = ''") },
  store_tenant_id_merchant_id_external_id_key: { "the ID of another store": update("store", "external_id = 'S1'") },
  terminal_external_id_is_1_to_64_characters: { "a longer one": update("terminal", "external_id = repeat('x', 65)") },
};

const credentialAttempts: Attempts = {
  access_key_is_well_formed: { "an access key without a prefix": insertCredential("ak_a", { access_key: "'key'" }) },
  credential_access_key_key: { "the access key of another credential": insertCredential("ak_a", {}) },
  party_is_given_exactly_in_variant_b: {
    "a credential of B without a party": insertCredential("ak_pos", { party_id: "null", access_key: "'ak_other'" }),
    "a credential of A with a party": insertCredential("ak_a", {
      party_id: "(select party_id from core.party where external_id = 'pty_a')",
      access_key: "'ak_other'",
    }),
  },
  credential_stands_for_one_caller: {
    "another key for a credential": update("credential", "credential_id = default"),
    "another party for a credential": update(
      "credential",
      "party_id = (select max(p.party_id) from core.party p where p.tenant_id = credential.tenant_id) + 1",
      "access_key = 'ak_pos'",
    ),
    "a revoked credential brought back": together(
      update("credential", "revoked_at = now()", "access_key = 'ak_pos'"),
      update("credential", "revoked_at = null", "access_key = 'ak_pos'"),
    ),
  },
  url_is_http: { "a webhook with an ftp URL": update("webhook", "url = 'ftp://example.com'") },
  url_is_at_most_2048_characters: { "a longer one": update("webhook", "url = rpad('https://', 2049, 'x')") },
  lease_names_its_worker: {
    "a lease without a worker": update("webhook", "holder = gen_random_uuid(), worker = null, lease_until = now()"),
    "a worker without a lease": update("webhook", "holder = null, worker = 1"),
  },
  lease_has_an_end: {
    "without an end": update("webhook", "holder = gen_random_uuid(), worker = 1, lease_until = null"),
  },
};

const recordAttempts: Attempts = {
  outcome_is_final: { "status 503": insertRequest({ request_id: "'new'", http_status: "503" }) },
  answer_is_a_json_object: { "a list": insertRequest({ request_id: "'new'", response: "'[]'" }) },
  client_key_is_1_to_128_characters: {
    "an empty request_id": insertRequest({ request_id: "''" }),
    "a key that is too long": insertRequest({ request_id: "'new'", idempotency_key: "repeat('x', 129)" }),
  },
  idempotency_key_is_used_once: {
    "a second time": insertCopy("request", "idempotency_key is not null", { request_id: "'new'" }),
  },
  audit_reason_is_at_most_1000_characters: {
    "an audit entry with a long reason": insertCopy("audit", "true", { audit_id: "0", reason: "repeat('x', 1001)" }),
  },
  code_version_is_current_or_before: {
    "the current version also as the one before":
      "insert into core.code_version (is_current, sha256) select false, sha256 from core.code_version",
  },
  currency_is_iso_4217: { "a currency in lower case": "insert into core.currency values ('eur', 2)" },
  decimals_are_0_to_4: { "a currency with five decimals": "insert into core.currency values ('QQQ', 5)" },
};

export const attemptsOnIdentities = [...namedAttempts, identityAttempts, credentialAttempts, recordAttempts];
