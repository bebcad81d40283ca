// The API description, its page and the guides: what is served, what the pages may load, and how they look in a
// browser.
import { readFileSync, readdirSync } from "node:fs";
import path from "node:path";
import type { BrowserContextOptions } from "playwright-core";
import t, { type Test } from "tap";
import { defaultLimits } from "../../src/config/config.ts";
import { createLog } from "../../src/common/log.ts";
import { errors } from "../../src/http/errors.ts";
import { listen } from "../../src/http/listener.ts";
import { readGuides } from "../../src/http/openapi/guide-pages.ts";
import { createReference } from "../../src/http/openapi/reference.ts";
import type { Problem } from "../../src/http/problem.ts";
import { routes } from "../../src/http/routes/table.ts";
import { serve } from "../../src/serve.ts";
import { readAnchors, readLinks } from "../docs/markdown.ts";
import { openBrowser, openPage, skip } from "../support/browser.ts";
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
  const inLog = ["/openapi/a.json openapi_a", "/openapi/b.json openapi_b", "/docs/guides.css docs", "/docs docs"];
  const files = ["page.js", "page.css", "swagger-ui-bundle.js", "swagger-ui.css"].map((file) => `/docs/${file} docs`);
  const described = { routes: [], events: [] };
  const folder = path.join(import.meta.dirname, "no such folder");
  t.strictSame(namesOf(createReference(described, undefined, readGuides(folder))), [...inLog, ...files]);
  const pages = createReference(described, null, []);
  t.strictSame(namesOf(pages), inLog);
  const { code, message } = await Promise.try(() => pages.at(-1)!.respond({} as never)).then(
    () => t.fail("an answer") as never,
    (error: Problem) => error,
  );
  fits(t, [code, message], ["ROUTE_NOT_FOUND", /swagger-ui-dist, which is not installed/]);
});

const guideNames = readdirSync(path.join(root, "docs"))
  .filter((name) => name.endsWith(".md"))
  .map((name) => name.slice(0, -".md".length));
const textsOf = (html: string, pattern: RegExp) => [...html.matchAll(pattern)].map(([, text = ""]) => text);

t.test("Each guide of docs is a page beside /docs, whose links and anchors lead to served pages", async (t) => {
  t.match((await get("/docs")).text, '<a href="docs/integrate">Guides</a>');
  const ids = new Map<string, Set<string>>();
  const links: [string, URL][] = [];
  for (const name of guideNames) {
    const { status, headers, text } = await get(`/docs/${name}`);
    t.strictSame([status, headers["content-type"]], [200, "text/html; charset=utf-8"], name);
    t.equal(
      headers["content-security-policy"],
      "default-src 'none'; style-src 'self'; img-src data:; " +
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
    const again = await get(`/docs/${name}`, { "if-none-match": headers["etag"] as string });
    t.strictSame([again.status, again.text], [304, ""]);
    const head = await sendPlain(world.url, "HEAD", `/docs/${name}`);
    t.strictSame([head.status, head.text, head.headers["content-length"]], [200, "", String(Buffer.byteLength(text))]);

    t.notMatch(text, /<script|<style|style=| on\w+=|<!--|&lt;!--/);
    const markdown = readFileSync(path.join(root, `docs/${name}.md`), "utf8");
    t.strictSame(new Set(textsOf(text, /<h\d id="([^"]+)"/g)), readAnchors(markdown), name);
    ids.set(`/docs/${name}`, new Set(textsOf(text, /<h\d id="([^"]+)"/g)));
    // The first two menus and the last section are there.
    for (const guide of guideNames) t.equal(text.split(`<a href="${guide}"`).length > 2, true, `${name}: ${guide}`);
    const page = new URL(`/docs/${name}`, world.url);
    links.push(
      ...textsOf(text, /<a (?:class="anchor" )?href="([^"]+)"/g).map((at): [string, URL] => [name, new URL(at, page)]),
    );
    const guides = readLinks(markdown).filter((target) => target.startsWith("#") || /^[\w-]+\.md/.test(target));
    for (const target of guides) t.ok(text.includes(`<a href="${target.replace(/\.md\b/, "")}"`), `${name}: ${target}`);
  }
  const own = links.filter(([, { origin }]) => origin === world.url);
  const targets = new Set(own.map(([, { pathname }]) => pathname));
  for (const target of targets) t.equal((await get(target)).status, 200, target);
  t.ok(targets.has("/openapi/a.json") && own.length > 500, `${own.length} links`);
  for (const [name, { pathname, hash }] of own)
    if (hash !== "") t.ok(ids.get(pathname)!.has(hash.slice(1)), `${name}: ${pathname}${hash}`);
});

t.test("A guide passes on no HTML, and no link to what is not served", async (t) => {
  const folder = t.testdir({
    "one.md": [
      "# One & `two`",
      "a <b onclick='x'>word</b> <!-- left out --> ![<i>](x.png)",
      "",
      "<script>alert(1)</script>",
      "",
      "[js](javascript:alert(1)) [file](../src/coupon.ts) [two](two.md#a) [self](one.md#b) [out](https://example.com/?a=1&b=2)",
      "",
      "```html\n<p>\n```",
    ].join("\n"),
  });
  const [page] = readGuides(folder);
  const [, main = ""] = page!.render().split("<main>");
  t.notMatch(main, /<(?!\/?(?:h1|p|a|code|pre|main|body|html)[ >])/);
  t.strictSame(textsOf(main, /href="([^"]+)"/g), ["one#b", "https://example.com/?a=1&amp;b=2"]);
  for (const text of [
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "js file two ",
    "&lt;p&gt;",
    "One &amp; <code>two</code>",
  ])
    t.ok(main.includes(text), text);
  t.notMatch(main, "left out");
});

t.test("DOCS=off: neither pages nor documents", async (t) => {
  const log = createLog("silent");
  const listening = await listen({ host: "127.0.0.1", port: 0, limits: defaultLimits }, log);
  const { address, keys } = world;
  const { url, stop } = await serve({ address, keys, limits: defaultLimits, hasDocs: false, listening, log });
  t.teardown(stop);
  const targets = [
    "/docs",
    "/docs/page.js",
    "/docs/integrate",
    "/docs/guides.css",
    "/openapi/a.json",
    "/openapi/b.json",
  ];
  for (const target of targets)
    fits(t, await sendPlain(url, "GET", target), { status: 404, json: { code: "ROUTE_NOT_FOUND" } }, target);
});

async function open(t: Test, target: string, shown = ".opblock", options: BrowserContextOptions = {}) {
  const { page, said, asked } = await openPage(await openBrowser(t), world.url, options);
  await page.goto(`${world.url}${target}`);
  await page.waitForSelector(shown);
  return { page, said, asked };
}

t.test("In a browser", { skip }, async (t) => {
  await t.test("the page shows every operation of each variant, asks no other server and logs nothing", async (t) => {
    for (const variant of ["A", "B"]) {
      const { page, said, asked } = await open(t, `/docs?variant=${variant.toLowerCase()}`);
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
      const { page, said } = await open(t, `/docs#error-${code}`);
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

t.test(
  "In a browser, a guide asks no other server, and is as wide as the screen, light or dark",
  { skip },
  async (t) => {
    for (const width of [390, 1280]) {
      for (const colorScheme of ["light", "dark"] as const) {
        const options = { viewport: { width, height: 800 }, colorScheme };
        const { page, said, asked } = await open(t, "/docs/integrate#errors", "main", options);
        const look = await page.evaluate(
          "[document.documentElement.scrollWidth, getComputedStyle(document.body).backgroundColor]",
        );
        const background = colorScheme === "light" ? "rgb(255, 255, 255)" : "rgb(20, 24, 29)";
        t.strictSame([look, said, asked], [[width, background], [], []]);
        const top = await page.evaluate("document.getElementById('errors').getBoundingClientRect().top");
        t.ok((top as number) > -1 && (top as number) < 200, `${top as number}`);
      }
    }
  },
);
