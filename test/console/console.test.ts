// The console over HTTP: who gets in, what the pages show, and what staff can change from them.
import t from "tap";
import { lookupHash } from "../../src/crypto/coupon-code.ts";
import { createSessions } from "../../src/console/sessions.ts";
import { pages } from "../../src/console/pages/table.ts";
import { connect } from "../../src/database/connect.ts";
import { moveToNoon } from "../support/business-days.ts";
import { findPage, openConsole, openPages, staffToken, unescape, userHeader } from "../support/console.ts";
import { createEmptyDatabase } from "../support/database.ts";
import { scenario } from "../support/scenario.ts";
import { tenants } from "../support/tenants.ts";

const file = { tenants: structuredClone(tenants) as any[] };
file.tenants[0].parties[0].webhook = { url: "https://example.com/hook?token=hidden" };
const world = await scenario(t, { file });
const { url, link, log, send, signIn } = await openConsole(t, world);

type Audited = { client: string; target: string; reason: string | null };
async function readAudit(action: string): Promise<Audited[]> {
  const query = "select client, target, reason from core.audit where action = $1 order by audit_id";
  const rows = await world.owner.rows<Audited>(query, [action]);
  return rows.map(({ client, target, reason }) => ({ client, target, reason }));
}

t.test("Nothing is shown without a session, with an ended one or with a made-up one", async (t) => {
  const { get, post, cookie } = await signIn();
  t.match(cookie, /^coupon_console=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/);
  t.equal((await get("/batches")).status, 200);
  for (const path of ["/", "/batches", "/batches/bat_x", "/coupons/cpn_x", "/?csv=0"]) {
    const { status, location } = await send(path);
    t.strictSame([status, location], [303, "/sign-in"], path);
  }
  t.equal((await send("/", { headers: { cookie: `coupon_console=${"a".repeat(43)}` } })).location, "/sign-in");
  await post("/sign-out", {});
  t.equal((await get("/batches")).location, "/sign-in", "after signing out");
  t.strictSame(
    [await readAudit("sign_in"), await readAudit("sign_out")],
    [
      [{ client: "coupon console", target: "anna", reason: null }],
      [{ client: "coupon console", target: "anna", reason: null }],
    ],
  );
});

t.test("A token, the printed link once, and the user of a trusted proxy sign in", async (t) => {
  const [, token] = link.split("link=") as [string, string];
  t.match((await send(link.slice(url.length))).text, `value="${token}"`, "the link only fills the form");
  t.equal((await send("/sign-in", { form: { token } })).status, 303);
  t.equal((await send("/sign-in", { form: { token } })).status, 403, "once");
  const late = { token, until: Date.now() };
  const sessions = createSessions({ database: world.owner, keys: world.keys, staff: new Map(), link: late });
  t.equal(await sessions.signIn(token), null, "within its hour");
  const proxied = await send("/batches", { headers: { [userHeader]: "otto@example.com" } });
  t.equal(proxied.status, 200);
  t.match(proxied.text, "Sign out otto@example.com");
  const { cookie } = await signIn();
  const other = await send("/batches", { headers: { cookie: cookie.split(";")[0]!, [userHeader]: "otto" } });
  t.match(other.text, "Sign out otto<", "a cookie of somebody else does not count");
  const wrong = await Promise.all(Array.from({ length: 12 }, () => send("/sign-in", { form: { token: "wrong" } })));
  t.ok(
    wrong.some(({ status }) => status === 429),
    "few wrong tokens are judged",
  );
  t.equal((await send("/sign-in", { form: { token: staffToken } })).status, 303, "a right one always is");
});

t.test("Until it serves, and without its database, the console answers 503 and names the log", async (t) => {
  const { address, drop } = await createEmptyDatabase();
  t.teardown(drop);
  const { url, serve } = await openPages(t);
  const ask = async () => {
    const response = await fetch(`${url}/batches`, { method: "POST", body: "form_token=x", redirect: "manual" });
    return [response.status, response.headers.get("retry-after"), await response.text()];
  };
  const refused = [503, "2", "The console is starting. If this lasts, the log of the service says why.\n"];
  t.strictSame(await ask(), refused);
  await t.rejects(serve({ ...world, address }), { message: /^the database is not migrated/ });
  t.strictSame(await ask(), refused);
});

t.test("A form of another site or without its token changes nothing", async (t) => {
  const [coupon] = await world.a.makeCoupons(1);
  const { postAs, form_token } = await signIn();
  const path = `/coupons/${coupon!.id}?action=void`;
  const form = { tenant: "ten_a", reason: "not by me" };
  t.equal((await postAs(path, form)).status, 403);
  t.equal((await postAs(path, { ...form, form_token }, { "sec-fetch-site": "cross-site" })).status, 403);
  t.equal((await postAs(path, { ...form, form_token: (await signIn()).cookie })).status, 403);
  t.strictSame(await readAudit("void_coupon"), []);
});

t.test("A coupon is found by its ID, its redemption and its code, and the code leaves no trace", async (t) => {
  const [coupon] = await world.a.makeCoupons(1);
  const { redemption } = await world.a.till.ok.redeem(coupon!, { order_id: "<b>4711</b>" });
  const { post, get } = await signIn();
  for (const find of [coupon!.id, redemption, coupon!.code, ` ${coupon!.code.toLowerCase()} `])
    t.equal((await post("/find", { find })).location, `/coupons/${coupon!.id}`);
  t.equal((await post("/find", { find: "nothing" })).status, 404);
  const [other] = await world.a.makeCoupons(1);
  await world.a.till.ok.redeem(other!);
  const { reversal } = await world.a.till.ok.reverse(other!);
  t.equal((await post("/find", { find: reversal })).location, `/coupons/${other!.id}`);
  const { text } = await get(`/coupons/${coupon!.id}`);
  for (const shown of [
    redemption,
    "mch_a",
    "&lt;b&gt;4711&lt;/b&gt;",
    "coupon.redeemed",
    '<span class="status REDEEMED">',
  ])
    t.ok(text.includes(shown), shown);
  t.notOk(text.includes(coupon!.code) || text.includes(lookupHash(world.keys, coupon!.code)));
  t.notOk(text.includes("<b>4711"), "a till's text stays text");
  t.notOk(JSON.stringify(log).includes(coupon!.code));
  t.equal((await get(`/batches?maker=${coupon!.code}`)).status, 400, "a code in an address");
  const inReason = await post(`/coupons/${coupon!.id}?action=void`, { tenant: "ten_a", reason: coupon!.code });
  t.strictSame([inReason.status, await readAudit("void_coupon")], [400, []], "a code in a reason");
  const { status } = await get("/coupons/cpn_00000000000000000000000000");
  t.equal(status, 404);
});

t.test("Staff patches a coupon and a batch from their pages, with a reason, under its name", async (t) => {
  const { id: batch, coupons } = await world.makeBatch(world.a.maker, "tpl_fixed", 1);
  const { post } = await signIn();
  t.match((await post(`/batches/${batch}?action=suspend`, { reason: "stolen" })).text, "Done.");
  t.match((await world.a.till.redeem(coupons[0]!)).json, { code: "BATCH_SUSPENDED" });
  const again = await post(`/coupons/${coupons[0]!.id}?action=release`, { tenant: "ten_a", reason: "stuck" });
  t.equal(again.status, 409);
  t.match(again.text, "has no lock to release");
  t.match((await post(`/coupons/${coupons[0]!.id}?action=void`, { tenant: "ten_a", reason: "stolen" })).text, "Done.");
  const by = { client: "coupon console anna", reason: "stolen" };
  t.strictSame(await readAudit("suspend_batch"), [{ ...by, target: batch }]);
  t.strictSame(await readAudit("void_coupon"), [{ ...by, target: coupons[0]!.id }]);
});

t.test("Lists have pages, filters, a CSV and the query for psql", async (t) => {
  for (let made = 0; made < 55; made += 1) await world.a.maker.ok.createBatch("tpl_fixed", 1);
  await world.mint();
  const { get } = await signIn();
  const first = (await get("/batches?tenant=ten_a&status=COMPLETED")).text;
  const batchesOf = (text: string) => [...text.matchAll(/href="\/batches\/(bat_\w+)"/g)].map(([, id]) => id);
  const next = /href="(\?[^"]*cursor=[^"]*)"/.exec(first)![1]!.replaceAll("&amp;", "&");
  const second = (await get(`/batches${next}`)).text;
  const rows = await world.owner.rows<{ batch: string }>(
    `select batch from report.batch where tenant = 'ten_a' and status = 'COMPLETED'
     order by created_at desc, batch desc`,
  );
  const expected = rows.map(({ batch }) => batch);
  t.ok(expected.length > 50);
  t.strictSame([...batchesOf(first), ...batchesOf(second)], expected);
  const csv = (await get("/batches?tenant=ten_a&status=COMPLETED&csv=0")).text.trim().split("\n");
  t.equal(csv.length, expected.length + 1);
  t.match(csv[0], /^created_at,template,batch,status,hold,tenant,/);
  const psql = /<pre[^>]*>([^]*?)<\/pre>/.exec(first)![1]!.replaceAll("&#39;", "'");
  t.equal((await world.owner.rows(psql.replace(/;$/, ""))).length, 50);
  t.equal((await get("/batches?tenant=it's")).status, 200);
  t.equal((await get("/batches?cursor=made-up")).status, 200);
});

t.test("Each page is reached by links, and shows what its query shows in psql", async (t) => {
  await moveToNoon(world, "pty_a");
  await world.steps.close();
  const [coupon] = await world.a.makeCoupons(1);
  await world.a.till.ok.redeem(coupon!, { order_amount: 19.9, order_id: "4711" });
  await world.a.till.ok.reverse(coupon!);
  await moveToNoon(world, "pty_a", 1);
  await world.steps.close();
  const { get } = await signIn();
  const reporter = connect(world.address, { role: "coupon_console", name: "coupon test", max: 1 });
  t.teardown(() => reporter.end());
  const seen = new Set<string>();
  const waiting = ["/", "/search?id=4711"];
  for (let path = waiting.shift(); path !== undefined; path = waiting.shift()) {
    const page = findPage(path)!;
    if (seen.has(page.path)) continue;
    seen.add(page.path);
    const { status, text } = await get(path);
    t.equal(status, 200, path);
    t.notMatch(text, "token=hidden");
    waiting.push(...[...text.matchAll(/href="(\/[^"?]*)"/g)].map(([, href]) => href!).filter((href) => findPage(href)));
    const queries = [...text.matchAll(/<pre[^>]*>([^]*?)<\/pre>/g)].map(([, query]) => unescape(query!));
    t.equal(queries.length, page.blocks.length, path);
    for (const [index, query] of queries.entries()) {
      const rows = await reporter.rows<{ rows: string[] }>(
        `select coalesce(array_agg(row_to_json(q)::text), '{}') as rows from (${query.replace(/;$/, "")}) q`,
      );
      const csv = (await get(`${path}${path.includes("?") ? "&" : "?"}csv=${index}`)).text.trim().split("\n").slice(1);
      // In psql it has one page.
      const shown = page.blocks[index]!.newestBy === undefined ? csv.length : Math.min(csv.length, 50);
      t.equal(shown, rows[0]!.rows.length, `${path}: ${page.blocks[index]!.title}`);
    }
  }
  t.strictSame(
    pages.staff.map((page) => page.path).filter((path) => !seen.has(path)),
    [],
  );
});
