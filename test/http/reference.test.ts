// The API description and its page: what is served, what the page may load, and how it looks in a real browser.
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { chromium } from "playwright-core";
import t from "tap";
import { defaultLimits } from "../../src/config/config.ts";
import { createLog } from "../../src/common/log.ts";
import { errors } from "../../src/http/errors.ts";
import { listen } from "../../src/http/listener.ts";
import { createReference } from "../../src/http/openapi/reference.ts";
import type { Problem } from "../../src/http/problem.ts";
import { routes } from "../../src/http/routes/table.ts";
import { serve } from "../../src/serve.ts";
import { sendPlain } from "../support/client.ts";
import { root } from "../support/copy.ts";
import { fits } from "../support/fits.ts";
import { scenario, type Scenario } from "../support/scenario.ts";
import { waitUntil } from "../support/wait-until.ts";

let world: Scenario;
t.before(async () => {
  world = await scenario(t, { http: true });
});
const get = (target: string, headers: Record<string, string> = {}) => sendPlain(world.url, "GET", target, headers);

t.test("The committed documents are served, unsigned, and again only if they have changed", async (t) => {
  for (const letter of ["a", "b"]) {
    const target = `/openapi/${letter}.json`;
    const committed = readFileSync(path.join(root, `docs/openapi/${letter}.json`), "utf8");
    const { status, headers, text } = await get(target);
    t.strictSame([status, headers["content-type"]], [200, "application/json; charset=utf-8"]);
    t.equal(text, committed);
    const etag = headers["etag"] as string;
    const again = await get(target, { "if-none-match": etag });
    t.strictSame([again.status, again.text, again.headers["etag"]], [304, "", etag]);
    const head = await sendPlain(world.url, "HEAD", target);
    const length = String(Buffer.byteLength(committed));
    t.strictSame([head.status, head.text, head.headers["content-length"]], [200, "", length]);
    t.equal((await sendPlain(world.url, "POST", target)).status, 405);
  }
});

t.test("The page loads only files of this service, and has no inline script or style", async (t) => {
  const { status, headers, text } = await get("/docs");
  t.strictSame([status, headers["content-type"]], [200, "text/html; charset=utf-8"]);
  t.equal(
    headers["content-security-policy"],
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; " +
      "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  );
  t.strictSame([headers["x-content-type-options"], headers["referrer-policy"]], ["nosniff", "no-referrer"]);
  const loaded = [...text.matchAll(/<(?:script|link)[^>]* (?:src|href)="([^"]+)"/g)].map(([, target = ""]) => target);
  const files = loaded.filter((target) => target !== "data:,");
  t.strictSame(files, ["docs/swagger-ui.css", "docs/page.css", "docs/swagger-ui-bundle.js", "docs/page.js"]);
  t.notMatch(text, /<style|style=|<script(?![^>]* src=)| on\w+=/);
  for (const target of files) {
    const file = await get(`/${target}`);
    const type = target.endsWith(".js") ? "text/javascript" : "text/css";
    t.strictSame([file.status, file.headers["content-type"]], [200, `${type}; charset=utf-8`], target);
    const again = await get(`/${target}`, { "if-none-match": file.headers["etag"] as string });
    t.equal(again.status, 304, target);
  }
});

t.test("Every error code has an anchor on the page, with its status and meaning", async (t) => {
  const { text } = await get("/docs");
  const rows = [...text.matchAll(/<tr id="error-(\w+)"><td>.*?<\/td><td>(\d+)<\/td><td>(.*?)<\/td><\/tr>/g)];
  t.strictSame(
    rows.map(([, code, status, meaning]) => [code, Number(status), meaning!.replace(/<\/?code>/g, "`")]),
    Object.entries(errors).map(([code, { status, meaning }]) => [code, status, meaning]),
  );
});

t.test("Without swagger-ui-dist the page is a 404 that says so, and the documents are still there", async (t) => {
  const namesOf = (pages: ReturnType<typeof createReference>) => pages.map((page) => `${page.path} ${page.operation}`);
  const inLog = ["/openapi/a.json openapi_a", "/openapi/b.json openapi_b", "/docs docs"];
  const files = ["page.js", "page.css", "swagger-ui-bundle.js", "swagger-ui.css"].map((file) => `/docs/${file} docs`);
  t.strictSame(namesOf(createReference({ routes: [], events: [] })), [...inLog, ...files]);
  const pages = createReference({ routes: [], events: [] }, null);
  t.strictSame(namesOf(pages), inLog);
  const { code, message } = await Promise.try(() => pages[2]!.respond({} as never)).then(
    () => t.fail("an answer") as never,
    (error: Problem) => error,
  );
  fits(t, [code, message], ["ROUTE_NOT_FOUND", /swagger-ui-dist, which is not installed/]);
});

t.test("DOCS=off: neither page nor documents", async (t) => {
  const log = createLog("silent");
  const listening = await listen({ host: "127.0.0.1", port: 0, limits: defaultLimits }, log);
  const { address, keys } = world;
  const { url, stop } = await serve({ address, keys, limits: defaultLimits, hasDocs: false, listening, log });
  t.teardown(stop);
  for (const target of ["/docs", "/docs/page.js", "/docs/swagger-ui.css", "/openapi/a.json", "/openapi/b.json"])
    fits(t, await sendPlain(url, "GET", target), { status: 404, json: { code: "ROUTE_NOT_FOUND" } }, target);
});

const program = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
const skip = program === undefined && "there is no Chromium at /usr/bin/chromium";

t.test("In a browser", { skip }, async (t) => {
  const browser = await chromium.launch({ executablePath: program!, args: ["--no-sandbox"] });
  t.teardown(() => browser.close());

  // A page, what its console said, and which other servers it asked.
  async function open(target: string) {
    const page = await browser.newPage();
    const [said, asked]: [string[], string[]] = [[], []];
    page.on("console", (message) => said.push(message.text()));
    page.on("pageerror", (error) => said.push(error.message));
    page.on("request", (request) => {
      if (!request.url().startsWith(`${world.url}/`) && !request.url().startsWith("data:")) asked.push(request.url());
    });
    await page.goto(`${world.url}${target}`);
    await page.waitForSelector(".opblock");
    return { page, said, asked };
  }

  await t.test("the page shows every operation of each variant, asks no other server and logs nothing", async (t) => {
    for (const variant of ["A", "B"]) {
      const { page, said, asked } = await open(`/docs?variant=${variant.toLowerCase()}`);
      t.match(await page.textContent("h1.title, h2.title"), `Coupon service, Variant ${variant}`);
      const shown = await page.$$eval(".opblock", (blocks) =>
        blocks.map((block) => [
          block.querySelector(".opblock-summary-method")?.textContent,
          block.querySelector(".opblock-summary-path")?.getAttribute("data-path"),
        ]),
      );
      for (const { method, path: at } of routes)
        t.ok(
          shown.some(([one, place]) => one === method && place === at),
          `${method} ${at}`,
        );
      await page.click(".opblock-summary-control >> nth=0");
      await page.waitForSelector(".responses-table");
      t.equal(await page.$$eval(".try-out__btn, .execute", (buttons) => buttons.length), 0, "it sends no call");
      t.strictSame([said, asked], [[], []]);
      await page.close();
    }
  });

  await t.test("the link to an error code shows its row, also after the reference is drawn", async (t) => {
    const codes = Object.keys(errors);
    for (const code of [codes[0]!, codes.at(-1)!]) {
      const { page, said } = await open(`/docs#error-${code}`);
      const row = page.locator(`#error-${code}`);
      await row.waitFor();
      const place = `document.getElementById("error-${code}").getBoundingClientRect()`;
      // A browser scrolls to whole pixels. page.waitForFunction would evaluate its text within the page, which the
      // policy forbids.
      const isInView = () => page.evaluate(`${place}.top > -1 && ${place}.bottom <= innerHeight`);
      await waitUntil("the row to be in view", isInView);
      t.ok((await row.textContent())?.startsWith(code), code);
      t.strictSame(said, []);
      await page.close();
    }
  });
});
