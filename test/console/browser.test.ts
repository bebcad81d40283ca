// Every page behind both doors in Chromium: it shows what psql shows, works by keyboard and without JavaScript, asks no
// other server, and lets nobody's text become markup.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";
import t, { type Test } from "tap";
import type { Page as Declared } from "../../src/console/page.ts";
import { pages } from "../../src/console/pages/table.ts";
import { connect } from "../../src/database/connect.ts";
import { openBrowser, openPage, skip } from "../support/browser.ts";
import { moveToNoon } from "../support/business-days.ts";
import { openConsole, staffToken } from "../support/console.ts";
import { newRequestId } from "../support/request-id.ts";
import { scenario, type Scenario } from "../support/scenario.ts";
import { tenants } from "../support/tenants.ts";
import { waitUntil } from "../support/wait-until.ts";

const hostile = "<img src=x onerror=alert(1)>";
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
// By uPlot, whose legend has a heading for each series.
const ours = { exclude: [[".uplot"]] };

type Shown = { headings: number; blocks: { rows: string[][]; query: string | null }[] };

// Scripts that run in the page. What a page shows: of each block its cells, with the exact times, and the query.
const readPage = `(() => {
  const cellOf = (cell) => cell.querySelector("time")?.dateTime ?? cell.textContent;
  const all = (of, selector) => [...of.querySelectorAll(selector)];
  return {
    headings: all(document, "h1").length,
    blocks: all(document, "main > section").filter((section) => section.querySelector(".tools") !== null)
      .map((section) => ({
        rows: [
          ...all(section, ".scroll tbody tr").map((row) => all(row, "td").map(cellOf)),
          ...all(section, "dl").map((list) => all(list, "dd").map(cellOf)),
        ],
        query: section.querySelector("pre")?.textContent ?? null,
      })),
  };
})()`;

// Which element has the focus; null if none has, or none shows it.
const readFocus = `(() => {
  const focused = document.activeElement;
  const isShown = focused !== document.body && getComputedStyle(focused).outlineStyle !== "none";
  return isShown ? [...document.querySelectorAll("*")].indexOf(focused) : null;
})()`;

const countShown = `[...document.querySelectorAll(
  "a[href], button, input:not([type=hidden]), select, summary, [tabindex='0']")]
  .filter((one) => one.checkVisibility()).length`;

const sumOfMinutes = `[...document.querySelector("figure").querySelectorAll(".scroll td:nth-child(2)")]
  .reduce((sum, cell) => sum + Number(cell.textContent), 0)`;

/** The cells of a row as the pages write them. */
function writeRow(json: string): string[] {
  const exact = (_: string, value: unknown, { source }: { source?: string } = {}) =>
    typeof value === "number" ? source : value;
  const row: object = JSON.parse(json, exact);
  return Object.entries(row)
    .filter(([name]) => name !== "page_key")
    .map(([, value]) => {
      if (value === null || (Array.isArray(value) && value.length === 0)) return "–";
      if (Array.isArray(value)) return value.join(", ");
      return typeof value === "object" ? JSON.stringify(value).replace(/"(-?\d+)"/g, "$1") : String(value);
    });
}

async function makeThings({ a, steps, owner, makeBatch }: Scenario) {
  await moveToNoon({ owner }, "pty_a");
  const { id, coupons } = await makeBatch(a.maker, "tpl_fixed", 4);
  const [first, second, , held] = coupons as [any, any, any, any];
  await a.till.ok.redeem(first, { order_amount: 19.9, order_id: hostile, store: hostile });
  await a.till.ok.reverse(first, { reason: hostile });
  await steps.sequence();
  await moveToNoon({ owner }, "pty_a", 1);
  await steps.close();
  await a.till.ok.redeem(second);
  await a.till.ok.lock(held);
  t.equal((await a.till.redeem(second)).status, 409);
  await steps.sequence();
  await owner.rows(
    `select jobs.record_deliveries(tenant_id, party_id, null, jsonb_build_array(jsonb_build_object(
       'event_id', event_id, 'attempt', 1, 'duration_ms', 1, 'is_taken', false, 'error', $1::text)))
     from (select distinct on (party_id) * from core.delivery) d`,
    [hostile],
  );
  return { batch: id, held };
}

// Chromium asks for a name beside a password, and says when a page is missing.
const isNews = (line: string): boolean => !/Password forms|status of 404/.test(line);

/** Types into a field that Tab reaches, and presses Enter. */
async function typeInto(page: Page, id: string, text: string): Promise<void> {
  for (let press = 0; press < 200; press += 1) {
    await page.keyboard.press("Tab");
    if ((await page.evaluate("document.activeElement.id")) === id) break;
  }
  await page.keyboard.type(text);
  await page.keyboard.press("Enter");
  await page.waitForSelector("[role=status]");
}

type Opened = { page: Page; url: string };

/** Opens each page of a door once, by links from the overview. Returns those that it found. */
async function crawl({ page, url }: Opened, ofDoor: readonly Declared[], visit: (path: string) => Promise<void>) {
  const shapeOf = (path: string) =>
    ofDoor.find((each) => new RegExp(`^${each.path.replace(/:\w+/g, "[^/?]+")}(\\?|$)`).test(path))?.path;
  const seen = new Set<string>();
  const waiting = ["/", `/search?id=${encodeURIComponent(hostile)}`];
  for (let path = waiting.shift(); path !== undefined; path = waiting.shift()) {
    const shape = shapeOf(path);
    if (shape === undefined || seen.has(shape)) continue;
    const answer = await page.goto(url + path);
    // A company may follow an ID to what another one owns.
    if (answer!.status() === 404) continue;
    t.equal(answer!.status(), 200, path);
    seen.add(shape);
    waiting.push(...(await page.locator("a[href^='/']").evaluateAll((all) => all.map((a) => a.getAttribute("href")!))));
    await visit(path);
  }
  return seen;
}

async function checkAccess(t: Test, page: Page, path: string): Promise<void> {
  await page.evaluate(axe);
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    const run = `axe.run(${JSON.stringify(ours)}).then(({ violations }) => violations
      .filter(({ impact }) => /serious|critical/.test(impact))
      .map(({ id, nodes }) => id + ": " + nodes[0].html))`;
    t.strictSame(await page.evaluate(run), [], `${path}, ${colorScheme}`);
  }
  await page.setViewportSize({ width: 390, height: 844 });
  const width = () => page.evaluate<number>("document.documentElement.scrollWidth");
  await waitUntil(`${path} fits a phone`, async () => (await width()) <= 390 || null);
  await page.setViewportSize({ width: 1280, height: 900 });
}

async function arrange() {
  const file = { tenants: structuredClone(tenants) as any[] };
  file.tenants[0].parties[0].webhook = { url: "https://example.com/hook", secret: `whsec_${btoa("x".repeat(24))}` };
  file.tenants[0].merchants[0].name = hostile;
  const world = await scenario(t, { file });
  const { batch, held } = await makeThings(world);
  const { url } = await openConsole(t, world);
  const browser = await openBrowser(t);
  const reporter = connect(world.address, { role: "coupon_console", name: "coupon test", max: 1 });
  t.teardown(() => reporter.end());

  const readAudit = async (action: string) =>
    (
      await world.owner.rows<{ target: string; reason: string }>(
        "select target, reason from core.audit where action = $1 order by audit_id",
        [action],
      )
    ).map(({ target, reason }) => ({ target, reason }));

  const linkOf = async (company: "a" | "b"): Promise<string> => {
    const by = company === "a" ? world.a.till : world.b.distributor;
    const { json } = await by.post("/v1/portal", { request_id: newRequestId() });
    return new URL(json.url).searchParams.get("link")!;
  };

  /** Signs in by typing. */
  async function signIn(token: string, options = {}) {
    const watched = await openPage(browser, url, options);
    watched.page.on("dialog", (dialog) => watched.said.push(`dialog: ${dialog.message()}`));
    await watched.page.goto(`${url}/`);
    await watched.page.keyboard.press("Tab");
    await watched.page.keyboard.type(token);
    await watched.page.keyboard.press("Enter");
    await watched.page.waitForSelector("h1:has-text('Overview')");
    return watched;
  }

  return { world, batch, held, url, browser, reporter, readAudit, linkOf, signIn };
}

let arranged: Awaited<ReturnType<typeof arrange>>;
t.before(async () => {
  if (!skip) arranged = await arrange();
});

t.test("Each page shows what psql shows, is accessible, and keeps text text", { skip }, async (t) => {
  const { url, reporter, signIn } = arranged;
  const { page, said, asked } = await signIn(staffToken);
  const seen = await crawl({ page, url }, pages.staff, async (path) => {
    const { headings, blocks } = await page.evaluate<Shown>(readPage);
    t.equal(headings, 1, path);
    // Its ages change each second.
    for (const { rows, query } of blocks.filter((block) => !block.query!.includes("measure_work"))) {
      const text = `select row_to_json(q)::text as row from (${query!.replace(/;$/, "")}) q`;
      const expected = await reporter.rows<{ row: string }>(text);
      t.strictSame(
        rows,
        expected.map(({ row }) => writeRow(row)),
        `${path}: ${query}`,
      );
    }
    const charts = pages.staff.find((each) => each.path === path)?.blocks.filter(({ as }) => as === "chart") ?? [];
    t.ok((await page.locator("figure canvas").count()) >= charts.length, `${path} draws its charts`);
    await checkAccess(t, page, path);
  });
  t.strictSame(
    pages.staff.map(({ path }) => path).filter((path) => !seen.has(path)),
    [],
  );
  t.match(await page.goto(`${url}/merchants/ten_a/mch_a`).then(() => page.textContent("main")), hostile);
  t.strictSame([said.filter(isNews), asked], [[], []]);
});

t.test("A company's pages are accessible too", { skip }, async (t) => {
  const { url, linkOf, signIn } = arranged;
  for (const company of ["a", "b"] as const) {
    const { page, said, asked } = await signIn(await linkOf(company));
    await crawl({ page, url }, pages.company, async (path) => {
      await checkAccess(t, page, path);
    });
    t.strictSame([said.filter(isNews), asked], [[], []]);
  }
});

t.test("Without JavaScript every page has its tables, and a form makes its change", { skip }, async (t) => {
  const { world, url, held, readAudit, signIn } = arranged;
  const { page } = await signIn(staffToken, { javaScriptEnabled: false });
  const seen = await crawl({ page, url }, pages.staff, async (path) => {
    const shown = await page.locator("main section").count();
    t.ok(shown > 0, path);
  });
  t.equal(seen.size, pages.staff.length);
  await page.goto(`${url}/coupons/${held.id}`);
  await page.fill("#release-reason", "the till broke");
  await page.click("button:text-is('Release lock')");
  t.match(await page.textContent("[role=status]"), "Done.");
  t.strictSame(await readAudit("release_lock"), [{ target: held.id, reason: "the till broke" }]);
  t.match((await world.a.till.query(held)).json, { coupon: { status: "ISSUED" } });
});

t.test("The keyboard alone reaches everything, and suspends a batch and replays a delivery", { skip }, async (t) => {
  const { world, url, batch, held, readAudit, signIn } = arranged;
  const { page } = await signIn(staffToken);
  await crawl({ page, url }, pages.staff, async (path) => {
    const wanted = await page.evaluate<number>(countShown);
    const reached = new Set<number>();
    for (let press = 0; press < wanted + 1; press += 1) {
      await page.keyboard.press("Tab");
      const focused = await page.evaluate<number | null>(readFocus);
      if (focused !== null) reached.add(focused);
    }
    t.equal(reached.size, wanted, `${path}: each is reached, and shows that it has the focus`);
  });
  await page.goto(`${url}/batches/${batch}`);
  await typeInto(page, "suspend-reason", "stolen");
  t.match(await page.textContent("[role=status]"), "Done.");
  t.match((await world.a.till.redeem(held)).json, { code: "BATCH_SUSPENDED" });
  await page.goto(`${url}/webhooks/ten_a/pty_a`);
  await typeInto(page, "replay_parked-reason", "they are back");
  t.strictSame(
    [await readAudit("suspend_batch"), await readAudit("replay_parked")],
    [[{ target: batch, reason: "stolen" }], [{ target: "pty_a", reason: "they are back" }]],
  );
});

t.test("The overview follows what happens", { skip }, async (t) => {
  const { world, signIn } = arranged;
  const { page } = await signIn(staffToken);
  const before = await page.evaluate<number>(sumOfMinutes);
  const [coupon] = await world.a.makeCoupons(1);
  await world.a.till.ok.redeem(coupon!);
  const after = () => page.evaluate<number>(sumOfMinutes);
  t.ok(await waitUntil("one more redemption", async () => (await after()) === before + 1 || null));
});
