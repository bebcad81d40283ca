-- The rights of each role. Every migrate runs this after loading the code, so it covers new
-- functions. Only the owner may use tables; a function that needs a table is `security definer`.

revoke all on all functions in schema core, rules, api, gate, jobs, admin, report, console,
  portal
from public;

-- The functions that several programs call.
grant usage on schema rules to coupon_api, coupon_worker, coupon_admin, coupon_console;
grant execute on function
  rules.register_keys(jsonb),
  rules.read_version(),
  rules.read_statement_page(int, int, date, text, int, int)
to coupon_api, coupon_worker, coupon_admin;
grant execute on function rules.list_invariants(), rules.check_invariant(text)
to coupon_worker, coupon_admin, coupon_console;
grant execute on function rules.read_export_page(int, int, int, int) to coupon_api, coupon_admin;

grant usage on schema gate to coupon_api;
grant execute on all functions in schema gate to coupon_api;

grant usage on schema jobs to coupon_worker;
grant execute on all functions in schema jobs to coupon_worker;

grant usage on schema report to coupon_report, coupon_admin, coupon_console;
grant select on all tables in schema report to coupon_report, coupon_admin, coupon_console;
grant execute on all functions in schema report to coupon_report, coupon_admin, coupon_console;

-- A view reads tables as its owner but calls functions as its reader, so readers need these
-- functions. They are pure or `security definer`.
grant execute on function
  rules.format_id(text, uuid), rules.parse_id(text, text), rules.format_time(timestamptz),
  rules.render_grant(uuid, uuid, numeric, text, text),
  rules.format_amount(bigint, int, text),
  rules.derive_status(text, timestamptz, timestamptz, boolean, text, timestamptz),
  rules.is_key_in_use(text),
  rules.compute_times_digest(timestamptz[]),
  rules.list_open_entries(int),
  rules.format_url_host(text),
  rules.find_unknown_zones(text[]),
  core.name_party(int, int),
  core.read_cell()
to coupon_report, coupon_admin, coupon_console, coupon_portal;

grant usage on schema admin to coupon_admin;
grant execute on all functions in schema admin to coupon_admin;

-- The console: who is signed in, and the patches that staff make from a page. None of these
-- functions takes or returns a secret, a salt or a hash.
grant usage on schema console, admin to coupon_console;
grant select on all tables in schema console to coupon_console;
grant execute on all functions in schema console to coupon_console;
grant execute on function rules.read_version() to coupon_console;
grant execute on function
  admin.suspend_batch(text, text),
  admin.resume_batch(text, text),
  admin.recall_batch(text, text),
  admin.release_lock(text, text, text),
  admin.void_coupon(text, text, text),
  admin.extend_coupon(text, text, timestamptz, text),
  admin.replay_event(text, text, text),
  admin.replay_parked(text, text, text),
  admin.enable_webhook(text, text, text),
  admin.disable_webhook(text, text, text),
  admin.test_webhook(text, text, text)
to coupon_console;

-- The portal: what the company that is signed in may see, and nothing else.
grant usage on schema portal to coupon_portal;
grant select on all tables in schema portal to coupon_portal;
grant execute on all functions in schema portal to coupon_portal;
