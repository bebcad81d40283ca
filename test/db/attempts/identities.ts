// Attempts on tenants and their parties, merchants, credentials and webhooks; on recorded requests and on the
// tables of facts.
import { rawUrls, wrongUrls } from "../../support/spellings.ts";
import { insertCopy, together, update, type Attempts } from "./statements.ts";

const insertTenant = (variant: string, unit: string) => `
  insert into core.tenant (external_id, name, variant, amount_unit)
  values ('ten_c', 'c', '${variant}', '${unit}')`;
const insertCredential = (accessKey: string, changes: Record<string, string>) =>
  insertCopy("credential", `access_key = '${accessKey}'`, { credential_id: "999", ...changes });
const insertRequest = (changes: Record<string, string>) =>
  insertCopy("request", "true", { idempotency_key: "null", ...changes });

const insertSession = (changes: Record<string, string>) =>
  insertCopy("console_session", "credential_id is null", { token_hash: "sha256('another')", ...changes });
const insertCompanySession = (changes: Record<string, string>) =>
  insertCopy("console_session", "credential_id is not null", { token_hash: "sha256('a third')", ...changes });

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
  identity_is_fixed: [
    update(table, `external_id = '${prefix}_new'`, unused(table)),
    update(table, `${table}_id = default`, unused(table)),
  ],
  [`${table}_external_id_is_well_formed`]: [
    insertOther(table, { external_id: "'red_1'" }),
    insertOther(table, { external_id: `'${prefix}'` }),
    insertOther(table, { external_id: `'${prefix.toUpperCase()}_1'` }),
  ],
  [table === "tenant" ? "tenant_external_id_key" : `${table}_external_id_tenant_id_key`]: [insertOther(table)],
  [`${table}_name_is_printable`]: [update(table, "name = e'line\\nbreak'", unused(table))],
  [`${table}_name_is_1_to_200_characters`]: [
    update(table, "name = ''", unused(table)),
    update(table, "name = repeat('x', 201)", unused(table)),
  ],
}));

const identityAttempts: Attempts = {
  identity_is_fixed: [update("merchant", "tenant_id = tenant_id + 1")],
  variant_is_known: [insertTenant("C", "major")],
  amount_unit_is_known: [insertTenant("A", "cents")],
  variant_and_unit_are_fixed_in_use: [
    update("tenant", "variant = 'B'", "external_id = 'ten_a'"),
    update("tenant", "amount_unit = 'minor'"),
  ],
  sandbox_is_fixed: [
    update("tenant", "is_sandbox = not is_sandbox", "feed_base = 0"),
    update("tenant", "feed_base = -1"),
  ],
  cleared_tenant_has_left: [update("tenant", "cleared_at = now()")],
  only_a_sandbox_was_reset: [update("tenant", "feed_base = 1", "not is_sandbox")],
  public_key_is_an_age_recipient: [
    update("party", "public_key = ''"),
    update("party", `public_key = 'age1${"q".repeat(57)}'`),
    update("party", `public_key = 'age1${"b".repeat(58)}'`),
    update("party", `public_key = 'AGE-SECRET-KEY-1${"Q".repeat(58)}'`),
  ],
  time_zone_is_no_abbreviation: [update("party", "time_zone = 'CET'"), update("party", "time_zone = 'utc'")],
  merchant_id_is_unique: [insertCopy("merchant", "true", { tenant_id: "999", external_id: "'mch_n'" })],
  store_external_id_is_1_to_64_characters: [update("store", "external_id = ''")],
  store_external_id_is_printable: [update("store", "external_id = e'\\u202e'")],
  terminal_external_id_is_printable: [update("terminal", "external_id = e'\\ufeff'")],
  store_tenant_id_merchant_id_external_id_key: [update("store", "external_id = 'S1'")],
  terminal_external_id_is_1_to_64_characters: [update("terminal", "external_id = repeat('x', 65)")],
};

const credentialAttempts: Attempts = {
  access_key_is_well_formed: [insertCredential("ak_a", { access_key: "'key'" })],
  credential_access_key_key: [insertCredential("ak_a", {})],
  last_used_at_is_a_full_hour: [
    update("credential", "last_used_at = '2026-01-01 00:30Z'"),
    update("credential", "last_used_at = 'infinity'"),
  ],
  party_is_given_exactly_in_variant_b: [
    insertCredential("ak_pos", { party_id: "null", access_key: "'ak_other'" }),
    insertCredential("ak_a", {
      party_id: "(select party_id from core.party where external_id = 'pty_a')",
      access_key: "'ak_other'",
    }),
  ],
  credential_stands_for_one_caller: [
    together(
      update("credential", "revoked_at = now()", "access_key = 'ak_pos'"),
      update("credential", "revoked_at = null", "access_key = 'ak_pos'"),
    ),
  ],
  url_is_http: [...wrongUrls, ...rawUrls].map((url) =>
    update("webhook", `url = '${url.replaceAll(":", "' || chr(58) || '")}'`),
  ),
  url_is_at_most_2048_characters: [update("webhook", "url = rpad('https://', 2049, 'x')")],
  lease_names_its_worker: [
    update("webhook", "holder = gen_random_uuid(), worker = null, lease_until = now()"),
    update("webhook", "holder = null, worker = 1"),
  ],
  lease_has_an_end: [update("webhook", "holder = gen_random_uuid(), worker = 1, lease_until = null")],
};

const recordAttempts: Attempts = {
  outcome_is_final: [insertRequest({ request_id: "'new'", http_status: "503" })],
  record_has_one_answer: [
    insertRequest({ request_id: "'new'", response: "null", redemption_id: "null" }),
    insertRequest({ request_id: "'new'", response: "'{}'", redemption_id: "gen_random_uuid()" }),
  ],
  answer_is_a_json_object: [insertRequest({ request_id: "'new'", response: "'[]'" })],
  client_key_is_1_to_128_characters: [
    insertRequest({ request_id: "''" }),
    insertRequest({ request_id: "'new'", idempotency_key: "repeat('x', 129)" }),
  ],
  refused_store_is_at_most_64_characters: [insertRequest({ request_id: "'new'", store: "repeat('x', 65)" })],
  client_key_is_printable: [
    insertRequest({ request_id: "e'\\t'" }),
    insertRequest({ request_id: "'new'", idempotency_key: "e'\\u200e'" }),
  ],
  idempotency_key_is_used_once: [insertCopy("request", "idempotency_key is not null", { request_id: "'new'" })],
  audit_reason_is_at_most_1000_characters: [
    insertCopy("audit", "true", { audit_id: "0", reason: "repeat('x', 1001)" }),
  ],
  audit_reason_is_printable: [insertCopy("audit", "true", { audit_id: "0", reason: "e'a\\nb'" })],
  audit_says_what_changed: [insertCopy("audit", "true", { audit_id: "0", action: "'patch'", details: "'{}'::jsonb" })],
  code_version_is_current_or_before: [
    "insert into core.code_version (is_current, sha256) select false, sha256 from core.code_version",
  ],
  cell_is_one_row: ["insert into core.cell values (false, 1)"],
  cell_is_1_to_999: [update("cell", "number = 0"), update("cell", "number = 1000")],
  home_is_1_to_999: [update("tenant", "home = 0"), update("tenant", "home = 1000")],
  tenant_id_is_of_its_first_home: [
    insertCopy("tenant", "true", { tenant_id: "1000001", external_id: "'ten_far'" }),
    insertCopy("tenant", "true", { tenant_id: "999", external_id: "'ten_far'", home: "2" }),
  ],
  token_hash_is_sha256: [insertSession({ token_hash: "'\\x01'::bytea" })],
  console_name_is_1_to_100_characters: [insertSession({ name: "''" }), insertSession({ name: "repeat('x', 101)" })],
  console_name_is_printable: [insertSession({ name: "e'line\\nbreak'" })],
  session_lasts_at_most_a_day: [
    insertSession({ expires_at: "now() - interval '1 hour'" }),
    insertSession({ expires_at: "now() + interval '25 hours'" }),
  ],
  company_has_a_credential: [insertCompanySession({ tenant_id: "null" })],
  company_session_lasts_at_most_an_hour: [insertCompanySession({ expires_at: "now() + interval '61 minutes'" })],
  link_lasts_at_most_ten_minutes: [
    insertCopy("portal_link", "true", { link_id: "gen_random_uuid()", expires_at: "now() - interval '1 minute'" }),
    insertCopy("portal_link", "true", {
      link_id: "gen_random_uuid()",
      expires_at: "now() + interval '11 minutes'",
    }),
  ],
  currency_is_iso_4217: ["insert into core.currency values ('eur', 2)"],
  decimals_are_0_to_4: ["insert into core.currency values ('QQQ', 5)"],
};

export const attemptsOnIdentities = [...namedAttempts, identityAttempts, credentialAttempts, recordAttempts];
