// Every page behind both doors in Chromium: it shows what psql shows, works by keyboard and without JavaScript, asks no
// other server, and lets nobody's text become markup.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Browser, Page } from "playwright-core";
import t, { type Test } from "tap";
import { pages } from "../../src/console/pages/table.ts";
import { connect } from "../../src/database/connect.ts";
import { openBrowser, openPage, skip } from "../support/browser.ts";
import { moveToNoon } from "../support/business-days.ts";
import { openConsole, staffToken } from "../support/console.ts";
import { newRequestId } from "../support/request-id.ts";
import { scenario, type Scenario } from "../support/scenario.ts";
import { tenants } from "../support/tenants.ts";

const hostile = "<img src=x onerror=alert(1)>";
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
// By uPlot, whose legend has a heading for each series.
const ours = { exclude: [[".uplot"]] };

type Shown = { headings: string[]; blocks: { rows: string[][]; query: string | null }[] };

/** What a page shows: of each block its cells, with the exact times, and the query for psql. */
const readPage = (page: Page): Promise<Shown> =>
  page.evaluate(() => {
    const cellOf = (cell: Element) => cell.querySelector("time")?.dateTime ?? cell.textContent ?? "";
    const all = (of: Element, selector: string) => [...of.querySelectorAll(selector)];
    return {
      headings: all(document.body, "h1").map((heading) => heading.textContent ?? ""),
      blocks: all(document.body, "main > section")
        .filter((section) => section.querySelector(".tools") !== null)
        .map((section) => ({
          rows: [
            ...all(section, "tbody tr").map((row) => all(row, "td").map(cellOf)),
            ...all(section, "dl").map((list) => all(list, "dd").map(cellOf)),
          ],
          query: section.querySelector("pre")?.textContent ?? null,
        })),
    };
  });

/** The cells of a row as the pages write them. */
function writeRow(json: string): string[] {
  const row = JSON.parse(json, (_, value: unknown, { source }: any) => (typeof value === "number" ? source : value));
  return Object.entries(row)
    .filter(([name]) => name !== "page_key")
    .map(([, value]) => {
      if (value === null || (Array.isArray(value) && value.length === 0)) return "–";
      if (Array.isArray(value)) return value.join(", ");
      return typeof value === "object" ? JSON.stringify(value) : String(value);
    });
}

async function makeThings({ a, steps, owner, makeBatch }: Scenario) {
  await moveToNoon({ owner }, "pty_a");
  const { id, coupons } = await makeBatch(a.maker, "tpl_fixed", 4);
  const [first, second, , held] = coupons as [any, any, any, any];
  await a.till.ok.redeem(first, { order_amount: 19.9, order_id: hostile, store: hostile });
  await a.till.ok.reverse(first, { reason: hostile });
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

/** Which element has the focus; null if none has, or none shows it. */
const readFocus = (): string | null => {
  const focused = document.activeElement;
  if (focused === null || focused === document.body) return null;
  const isShown = getComputedStyle(focused).outlineStyle !== "none";
  return isShown ? String([...document.querySelectorAll("*")].indexOf(focused)) : null;
};

/** Types into a field that Tab reaches, and presses Enter. */
async function typeInto(page: Page, id: string, text: string): Promise<void> {
  for (let press = 0; press < 200; press += 1) {
    await page.keyboard.press("Tab");
    if ((await page.evaluate(() => document.activeElement?.id)) === id) break;
  }
  await page.keyboard.type(text);
  await page.keyboard.press("Enter");
  await page.waitForSelector("[role=status]");
}

t.test("In a browser", { skip }, async (t) => {
  const file = { tenants: structuredClone(tenants) as any[] };
  file.tenants[0].parties[0].webhook = { url: "https://example.com/hook", secret: `whsec_${btoa("x".repeat(24))}` };
  file.tenants[0].merchants[0].name = hostile;
  const world = await scenario(t, { file });
  const { batch, held } = await makeThings(world);
  const { url } = await openConsole(t, world);
  const browser = await openBrowser(t);
  const reporter = connect(world.address, { role: "coupon_console", name: "coupon test", max: 1 });
  t.teardown(() => reporter.end());

  const linkOf = async (company: "a" | "b"): Promise<string> => {
    const by = company === "a" ? world.a.till : world.b.distributor;
    const { json } = await by.post("/v1/portal", { request_id: newRequestId() });
    return new URL(json.url).searchParams.get("link")!;
  };

  /** Signs in by typing. */
  async function signIn(browser: Browser, token: string, options = {}) {
    const watched = await openPage(browser, url, options);
    watched.page.on("dialog", (dialog) => watched.said.push(`dialog: ${dialog.message()}`));
    await watched.page.goto(`${url}/`);
    await watched.page.keyboard.press("Tab");
    await watched.page.keyboard.type(token);
    await watched.page.keyboard.press("Enter");
    await watched.page.waitForSelector("h1:has-text('Overview')");
    return watched;
  }

  /** Opens each page of a door once, by links from the overview. Returns those that it found. */
  async function crawl(page: Page, ofDoor: typeof pages.company, visit: (path: string) => Promise<void>) {
    const shapeOf = (path: string) =>
      ofDoor.find((each) => new RegExp(`^${each.path.replace(/:\w+/g, "[^/]+")}$`).test(path))?.path;
    const seen = new Set<string>();
    const waiting = ["/"];
    for (let path = waiting.shift(); path !== undefined; path = waiting.shift()) {
      const shape = shapeOf(path);
      if (shape === undefined || seen.has(shape)) continue;
      const answer = await page.goto(url + path);
      // A company may follow an ID to what another one owns.
      if (answer!.status() === 404) continue;
      t.equal(answer!.status(), 200, path);
      seen.add(shape);
      waiting.push(
        ...(await page.locator("a[href^='/']").evaluateAll((all) => all.map((a) => a.getAttribute("href")!))),
      );
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
    t.ok(await page.evaluate("document.documentElement.scrollWidth <= 390"), `${path} fits a phone`);
    await page.setViewportSize({ width: 1280, height: 900 });
  }

  await t.test("each page shows what psql shows, is accessible, and keeps text text", async (t) => {
    const { page, said, asked } = await signIn(browser, staffToken);
    const seen = await crawl(page, pages.staff, async (path) => {
      const { headings, blocks } = await readPage(page);
      t.equal(headings.length, 1, path);
      for (const { rows, query } of blocks) {
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

  await t.test("a company's pages are accessible too", async (t) => {
    for (const company of ["a", "b"] as const) {
      const { page, said, asked } = await signIn(browser, await linkOf(company));
      await crawl(page, pages.company, async (path) => {
        await checkAccess(t, page, path);
      });
      t.strictSame([said.filter(isNews), asked], [[], []]);
    }
  });

  await t.test("without JavaScript every page has its tables, and a form makes its change", async (t) => {
    const { page } = await signIn(browser, staffToken, { javaScriptEnabled: false });
    const seen = await crawl(page, pages.staff, async (path) => {
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

  await t.test("the keyboard alone reaches everything, and suspends a batch and replays a delivery", async (t) => {
    const { page } = await signIn(browser, staffToken);
    await crawl(page, pages.staff, async (path) => {
      const all = "a[href], button, input:not([type=hidden]), select, summary, [tabindex='0']";
      const wanted = await page
        .locator(all)
        .evaluateAll((found) => found.filter((one) => one.checkVisibility()).length);
      const reached = new Set<string>();
      for (let press = 0; press < wanted + 1; press += 1) {
        await page.keyboard.press("Tab");
        const focused = await page.evaluate(readFocus);
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

  await t.test("the overview follows what happens", async (t) => {
    const { page } = await signIn(browser, staffToken);
    const count = () =>
      page
        .locator("figure")
        .first()
        .evaluate((figure) =>
          [...figure.querySelectorAll("tbody td:nth-child(2)")].reduce(
            (sum, cell) => sum + Number(cell.textContent),
            0,
          ),
        );
    const before = await count();
    const [coupon] = await world.a.makeCoupons(1);
    await world.a.till.ok.redeem(coupon!);
    await page.waitForFunction(
      (more) =>
        [...document.querySelectorAll("figure:first-of-type tbody td:nth-child(2)")]
          .slice(0, 120)
          .reduce((sum, cell) => sum + Number(cell.textContent), 0) >= more,
      before + 1,
      { timeout: 15_000 },
    );
    t.equal(await count(), before + 1);
  });

  const readAudit = async (action: string) =>
    (
      await world.owner.rows<{ target: string; reason: string }>(
        "select target, reason from core.audit where action = $1 order by audit_id",
        [action],
      )
    ).map(({ target, reason }) => ({ target, reason }));
});
