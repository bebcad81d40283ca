// The portal: how a company gets in, and that it sees its own things only, by the rules of the API.
import t from "tap";
import { hash } from "node:crypto";
import { readPortalLink } from "../../src/crypto/portal-link.ts";
import { pages } from "../../src/console/pages/table.ts";
import { connect } from "../../src/database/connect.ts";
import { moveToNoon } from "../support/business-days.ts";
import { openConsole } from "../support/console.ts";
import { newRequestId } from "../support/request-id.ts";
import { scenario } from "../support/scenario.ts";
import { template, tenants } from "../support/tenants.ts";

// pty_other is in every role too, so each company has rows of each kind, and a neighbour that has them.
const file = { tenants: structuredClone(tenants) as any[] };
const [a, a2, b] = file.tenants;
const hook = (name: string) => ({ url: `https://example.com/${name}`, secret: `whsec_${btoa(name.padEnd(24, "x"))}` });
a.parties[0].webhook = hook("a");
a2.parties[0].webhook = hook("a2");
b.templates.push(template("tpl_other", "pty_other", { name: "5.00 off", distributor: "pty_other" }));
for (const party of b.parties) if (/dist|other/.test(party.id)) party.webhook = hook(party.id);

const world = await scenario(t, { file });
const { send, signIn, log } = await openConsole(t, world);
const callers = {
  ten_a: world.as("ak_a"),
  ten_a2: world.as("ak_a_stranger", "mch_a2s"),
  pty_maker: world.as("ak_maker"),
  pty_dist: world.as("ak_dist"),
  pty_shop: world.as("ak_shop"),
  pty_pos: world.as("ak_pos"),
  pty_other: world.as("ak_other", "mch_b2"),
};
type Company = keyof typeof callers;
const companies = Object.keys(callers) as Company[];

async function askForLink(company: Company): Promise<string> {
  const { status, json } = await callers[company].post("/v1/portal", { request_id: newRequestId() });
  t.equal(status, 200);
  return new URL(json.url).searchParams.get("link")!;
}
const enter = async (company: Company) => signIn(await askForLink(company));

// Who acts for which merchants, as the provisioning file says.
const merchantsOf: Record<string, string[]> = { pty_shop: ["mch_b"], pty_pos: ["mch_b"], pty_other: ["mch_b2"] };

type Row = Record<string, any>;
type Rows = Record<string, Row[]>;

/** What a company may see of each view, told apart from the SQL. In Variant A, it is the whole tenant. */
const mayA: Record<string, (row: Row) => boolean> = {
  statement: (row) => row["ready_at"] !== null,
};
const mayB: Record<string, (row: Row, party: string, all: Rows) => boolean> = {
  batch: ({ maker, distributor, status }, party) =>
    maker === party || (distributor === party && status === "ALLOCATED"),
  daily_batch: ({ maker, distributor }, party) => [maker, distributor].includes(party),
  daily: ({ distributor, merchant }, party) => distributor === party || acts(party, merchant),
  daily_distributor: ({ distributor }, party) => distributor === party,
  daily_store: ({ distributor, merchant }, party) => distributor === party || acts(party, merchant),
  merchant: ({ merchant }, party) => acts(party, merchant),
  redemption: ({ merchant }, party) => acts(party, merchant),
  merchant_change: ({ merchant }, party) => acts(party, merchant),
  coupon: ({ batch, coupon }, party, all) =>
    all["batch"]!.some((row) => row["batch"] === batch && mayB["batch"]!(row, party, all)) ||
    all["redemption"]!.some((row) => row["coupon"] === coupon && acts(party, row["merchant"])),
  statement: ({ distributor, ready_at }, party) => distributor === party && ready_at !== null,
  statement_line: ({ distributor }, party) => distributor === party,
  distributor_balance: ({ distributor }, party) => distributor === party,
  maker_balance: ({ maker }, party) => maker === party,
  party: (row, party) => row["party"] === party,
  webhook_health: (row, party) => row["party"] === party,
  delivery: (row, party) => row["party"] === party,
  delivery_attempt: (row, party) => row["party"] === party,
  event: (row, party) => row["party"] === party,
  request: ({ caller }, party) => caller === party,
};
const views = Object.keys(mayB);

const acts = (party: string, name: string): boolean => merchantsOf[party]?.includes(name) ?? false;
const tenantOf = (company: Company): string => (company.startsWith("ten_") ? company : "ten_b");

function maySee(view: string, row: Row, company: Company, all: Rows): boolean {
  if (row["tenant"] !== tenantOf(company)) return false;
  return company.startsWith("ten_") ? (mayA[view]?.(row) ?? true) : mayB[view]!(row, company, all);
}

/** Whose lock or redemption is live, only those see who act for the merchant. */
function hideLive(row: Row, company: Company): Row {
  const isOwn = company.startsWith("ten_") || liveAt.get(row["coupon"])?.some((name) => acts(company, name)) === true;
  return isOwn ? row : { ...row, live_redemption: null, live_redemption_key: null, lock_expires_at: null };
}
const liveAt = new Map<string, string[]>();

/** Who reads all rows: that of merchants is for the console only. */
const placeOf = (view: string): string => `${view === "merchant_change" ? "console" : "report"}.${view}`;

/** As the portal reads, with the session of this cookie. */
async function readAs(token: string | null, schema: "portal" | "all"): Promise<Rows> {
  const settings = token === null ? {} : { "coupon.session": hash("sha256", token) };
  const role = schema === "portal" ? "coupon_portal" : "coupon_console";
  const reader = connect(world.address, { role, name: "coupon test", max: 1, settings });
  const all: Rows = {};
  for (const view of views)
    all[view] = (
      await reader.rows<{ row: Row }>(
        `select to_jsonb(v) as row from ${schema === "portal" ? `portal.${view}` : placeOf(view)} v`,
      )
    ).map(({ row }) => row);
  await reader.end();
  return all;
}

/** Coupons that companies have redeemed. Whoever may see one finds it by its code. */
const redeemedBy: { code: string; id: string }[] = [];
const foundBy = (company: Company, all: Rows): [string, boolean][] =>
  redeemedBy.map(({ code, id }) => [
    code,
    all["coupon"]!.some((row) => row["coupon"] === id && maySee("coupon", row, company, all)),
  ]);

/** Movements of each company, of coupons that others have made and released, and a closed day of each. */
async function makeMovements(): Promise<void> {
  const batchOf = (company: Company, name: string, count: number) => world.makeBatch(callers[company], name, count);
  const [ofA, ofA2, ofB, ofOther] = [
    await batchOf("ten_a", "tpl_fixed", 2),
    await batchOf("ten_a2", "tpl_a2s", 2),
    await batchOf("pty_maker", "tpl_b", 5),
    await batchOf("pty_other", "tpl_other", 4),
  ];
  await world.makeBatch(callers.pty_maker, "tpl_b", 1, { isReleased: false });
  const store = { store: "S1", terminal: "T1" };
  const redeemed: [Company, { coupons: any[] }, Record<string, unknown>?][] = [
    ["ten_a", ofA],
    ["ten_a2", ofA2],
    ["pty_pos", ofB, store],
    ["pty_other", ofB],
    ["pty_shop", ofOther, store],
    ["pty_other", ofOther],
  ];
  const move = async () => {
    for (const [company, { coupons }, more] of redeemed) {
      const coupon = coupons.shift();
      redeemedBy.push(coupon);
      await callers[company].ok.redeem(coupon, { ...more, order_id: `<i>of ${company}</i>` });
      t.equal((await callers[company].redeem(coupon, more)).status, 409);
    }
  };
  const parties = ["pty_a", "pty_a2", "pty_dist", "pty_other"];
  for (const party of parties) await moveToNoon(world, party);
  await move();
  await callers.pty_other.ok.lock(ofB.coupons.pop()!);
  for (const party of parties) await moveToNoon(world, party, 1);
  await world.steps.close();
  // And of an open day.
  await move();
  await world.steps.sequence();
  await world.owner.rows(`
    select jobs.record_deliveries(tenant_id, party_id, null, jsonb_build_array(jsonb_build_object(
      'event_id', event_id, 'attempt', 1, 'duration_ms', 1, 'is_taken', false, 'error', '<b>no</b>')))
    from (select distinct on (tenant_id, party_id) * from core.delivery) d`);
}

t.test("A company sees the rows that the rules give it, and no others", async (t) => {
  await makeMovements();
  t.strictSame(
    Object.values(await readAs(null, "portal")).flat(),
    [],
    "nobody is signed in, so there is nothing to see",
  );
  const { cookie: ofStaff } = await signIn();
  const tokenOf = (cookie: string) => /coupon_console=([\w-]+)/.exec(cookie)![1]!;
  t.strictSame(Object.values(await readAs(tokenOf(ofStaff), "portal")).flat(), [], "staff has reports, not a portal");
  const counts = new Map<string, number>();
  for (const company of companies) {
    const { cookie } = await enter(company);
    const all = await readAs(null, "all");
    const seen = await readAs(tokenOf(cookie), "portal");
    for (const row of all["redemption"]!) if (row["ended_at"] === null) liveAt.set(row["coupon"], [row["merchant"]]);
    for (const view of views) {
      const texts = (rows: Row[]) => rows.map((row) => JSON.stringify(row)).sort();
      const expected = all[view]!.filter((row) => maySee(view, row, company, all)).map((row) =>
        view === "coupon" ? hideLive(row, company) : row,
      );
      t.strictSame(texts(seen[view]!), texts(expected), `${company}: ${view}`);
      if (expected.length > 0) counts.set(view, (counts.get(view) ?? 0) + 1);
    }
  }
  t.strictSame(
    views.filter((view) => counts.get(view)! < 3),
    [],
    "at least three companies own rows of each view",
  );
});

t.test("The feed and a merchant's list are in order, newest first", async (t) => {
  for (const [company, feed] of [
    ["pty_dist", "ten_b"],
    ["ten_a", "ten_a"],
  ] as const) {
    const pulled = (await callers[company].get("/v1/events?limit=100")).json.events.map(
      (event: Row) => event["event_id"],
    );
    const { text } = await (await enter(company)).get("/events?csv=0");
    const shown = text
      .trim()
      .split("\n")
      .slice(1)
      .map((line) => line.split(",")[3]);
    t.ok(pulled.length > 1, feed);
    t.strictSame(shown, pulled.toReversed());
  }
});

t.test("A link signs in once, within ten minutes, and only if we have signed it", async (t) => {
  const body = { request_id: newRequestId() };
  const [first, again] = [await callers.ten_a.post("/v1/portal", body), await callers.ten_a.post("/v1/portal", body)];
  t.equal(first.text, again.text, "a retry gets the same link");
  const { portal_link: id, url, expires_at } = first.json;
  const left = Date.parse(expires_at) - Date.now();
  t.ok(left > 590_000 && left <= 600_000);
  t.match(url, `http://127.0.0.1:8081/sign-in?link=${id}.`);
  const stored = await world.owner.rows<{ text: string }>("select row_to_json(r)::text as text from core.request r");
  t.notMatch(stored.map((row) => row.text).join(), new URL(url).searchParams.get("link")!.split(".")[1]!);
  const token = new URL(url).searchParams.get("link")!;
  t.equal(readPortalLink(world.keys, token), id);
  const forged = token.replace(/\.(.)/, (_, first) => (first === "A" ? ".B" : ".A"));
  t.equal(readPortalLink(world.keys, forged), null);
  t.equal((await send(`/sign-in?link=${token}`)).status, 200, "to follow it fills the form");
  const both = await Promise.all([1, 2].map(() => send("/sign-in", { form: { token } })));
  t.strictSame(both.map(({ status }) => status).sort(), [303, 403], "two at once: one gets in");
  t.equal((await send("/sign-in", { form: { token: `${id}.${"A".repeat(43)}` } })).status, 403);
  const late = await askForLink("ten_a");
  await world.owner.rows(`update core.portal_link set created_at = created_at - interval '11 minutes',
                            expires_at = expires_at - interval '11 minutes'`);
  t.equal((await send("/sign-in", { form: { token: late } })).status, 403, "too late");
  await askForLink("ten_a");
  t.equal((await world.owner.rows("select from core.portal_link")).length, 1, "old links go");
  t.notMatch(JSON.stringify(log), token.split(".")[1]!);
});

t.test("A session ends after an hour, and when its access key is revoked", async (t) => {
  const hour = await enter("pty_shop");
  t.equal((await hour.get("/batches")).status, 200);
  await world.owner.rows(`update core.console_session set signed_in_at = signed_in_at - interval '1 hour',
                            expires_at = expires_at - interval '1 hour'`);
  t.equal((await hour.get("/batches")).location, "/sign-in");
  const [revoked, link] = [await enter("pty_pos"), await askForLink("pty_pos")];
  t.equal((await revoked.get("/batches")).status, 200);
  await world.owner.rows("update core.credential set revoked_at = now() where access_key = 'ak_pos'");
  t.equal((await revoked.get("/batches")).location, "/sign-in");
  t.equal((await send("/sign-in", { form: { token: link } })).status, 403);
  const audited = await world.owner.rows<{ tenant_id: number | null; details: object }>(
    "select tenant_id, details from core.audit where action = 'sign_in' and target = 'pty_pos'",
  );
  t.match(audited.at(-1), { tenant_id: Number, details: { access_key: "ak_pos" } });
});

t.test("Each page of each company shows its own things only, and changes nothing", async (t) => {
  const all = await readAs(null, "all");
  const paths = (view: string, to: (row: Row) => string) => all[view]!.map(to);
  const things = [
    ...paths("batch", ({ batch }) => `/batches/${batch}`),
    ...paths("coupon", ({ coupon }) => `/coupons/${coupon}`),
    ...paths("party", ({ tenant, party }) => `/parties/${tenant}/${party}`),
    ...paths("merchant", ({ tenant, merchant }) => `/merchants/${tenant}/${merchant}`),
    ...paths("webhook_health", ({ tenant, party }) => `/webhooks/${tenant}/${party}`),
    ...paths(
      "statement",
      ({ tenant, distributor, business_date: day }) => `/statements/${tenant}/${distributor}/${day}`,
    ),
  ];
  const viewOf = {
    batches: "batch",
    coupons: "coupon",
    parties: "party",
    merchants: "merchant",
    webhooks: "webhook_health",
  };
  const lists = pages.company.map(({ path }) => path).filter((path) => !path.includes(":"));
  // pty_pos has lost its access key, and the others are like one of these.
  for (const company of ["ten_a", "pty_maker", "pty_dist", "pty_other"] as const) {
    const { get, post } = await enter(company);
    const own = (view: string) => all[view]!.filter((row) => maySee(view, row, company, all));
    const foreign = (view: string, column: string) =>
      all[view]!.filter((row) => !maySee(view, row, company, all)).map((row) => String(row[column]));
    const hidden = [...foreign("coupon", "coupon"), ...foreign("redemption", "order_id").filter((id) => id !== "null")];
    const shown: string[] = [];
    const leaks: string[] = [];
    for (const path of [...lists, ...things]) {
      const { status, text } = await get(path);
      if (status === 200) shown.push(path);
      if (status !== 200 && status !== 404) leaks.push(`${path}: ${status}`);
      leaks.push(...hidden.filter((name) => text.includes(name)).map((name) => `${path}: ${name}`));
      if (/This query in psql|<h2>Change|<b>no|<i>of/.test(text)) leaks.push(`${path}: not for companies, or not text`);
    }
    t.strictSame(leaks, [], company);
    for (const [at, view] of Object.entries(viewOf))
      t.equal(shown.filter((path) => path.startsWith(`/${at}/`)).length, own(view).length, `${company}: ${at}`);
    t.equal((await get("/audit")).status, 404);
    for (const batch of own("batch"))
      t.equal((await post(`/batches/${batch["batch"]}?action=suspend`, { reason: "by a company" })).status, 404);
    for (const [code, isFound] of foundBy(company, all)) {
      const { location } = await post("/find", { find: code });
      t.equal(location !== null, isFound, `${company} finds a coupon by its code`);
    }
  }
  const audited = await world.owner.rows("select from core.audit where action = 'suspend_batch'");
  t.equal(audited.length, 0);
});

t.test("A session that ends within a statement sees nothing more, and a CSV is cut", async (t) => {
  const { cookie, get } = await enter("pty_shop");
  const token = /coupon_console=([\w-]+)/.exec(cookie)![1]!;
  const settings = { "coupon.session": hash("sha256", token) };
  const reader = connect(world.address, { role: "coupon_portal", name: "coupon test", max: 1, settings });
  t.teardown(() => reader.end());
  const setEnd = (end: string) =>
    world.owner.rows(
      `update core.console_session set signed_in_at = now(), expires_at = ${end} where token_hash = sha256($1::bytea)`,
      [token],
    );
  // The sleep is between the two questions who is signed in.
  await setEnd("clock_timestamp() + interval '400 milliseconds'");
  const parties = await reader.rows<{ party: string | null }>(
    `select portal.find_tenant() as tenant, pg_sleep(0.6), portal.find_party() as party`,
  );
  t.match(parties, [{ tenant: "ten_b", party: "pty_shop" }], "a statement has one moment");
  const [after] = await reader.rows<{ party: string | null }>("select portal.find_party() as party");
  t.equal(after!.party, null);
  t.equal((await get("/parties")).location, "/sign-in");
});

t.test("Many sessions at once share few connections, and each is answered", async (t) => {
  const browsers: Awaited<ReturnType<typeof enter>>[] = [];
  for (let round = 0; round < 8; round += 1)
    for (const company of ["pty_maker", "pty_dist", "ten_a"] as const) browsers.push(await enter(company));
  let most = 0;
  let isOver = false;
  const count = async () => {
    while (!isOver) {
      const [row] = await world.owner.rows<{ count: number }>(
        "select count(*)::int as count from pg_stat_activity where application_name = 'coupon portal'",
      );
      most = Math.max(most, row!.count);
    }
  };
  const counting = count();
  const answers = await Promise.all(browsers.map(({ get }) => get("/batches")));
  isOver = true;
  await counting;
  t.ok(most > 1 && most <= 9, `${most} connections: 8, and one whose end the server has not noticed`);
  const statuses = new Set(answers.map(({ status }) => status));
  t.ok(
    [...statuses].every((status) => status === 200 || status === 429),
    [...statuses].join(),
  );
  t.ok(answers.filter(({ status }) => status === 200).length >= 10);
});

t.test("What is asked for is bounded, and only what exists is found", async (t) => {
  const { get, post } = await enter("pty_other");
  for (const name of ["constructor", "__proto__", "toString"])
    t.equal((await get(`/statements/ten_b/pty_other/2020-01-01?file=${name}`)).status, 404, name);
  t.equal((await get(`/search?id=${"1".repeat(5_000)}`)).status, 400);
  t.equal((await post("/find", { find: "\0" })).status, 400);
  t.notOk(log.some((line) => line["msg"] === "a page failed"));
  const statuses = [];
  for (let search = 0; search < 40; search += 1) statuses.push((await post("/find", { find: "nothing" })).status);
  t.ok(statuses.filter((status) => status === 404).length <= 30 && statuses.at(-1) === 429);
});
