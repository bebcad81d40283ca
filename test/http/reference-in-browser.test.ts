// The page of the API description in a real browser: Chromium, where it is installed.
import { existsSync } from "node:fs";
import { chromium, type Browser, type Page } from "playwright-core";
import t from "tap";
import { errors } from "../../src/http/errors.ts";
import { routes } from "../../src/http/routes/table.ts";
import { fits } from "../support/fits.ts";
import { startService, type Running } from "../support/service.ts";
import { waitUntil } from "../support/wait-until.ts";

const program = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
const skip = program === undefined && "there is no Chromium at /usr/bin/chromium";

let service: Running;
let browser: Browser;
if (!skip)
  t.before(async () => {
    service = await startService(t);
    browser = await chromium.launch({ executablePath: program!, args: ["--no-sandbox"] });
    t.teardown(() => browser.close());
  });

// A page, what its console said, and which other servers it asked.
async function open(target: string): Promise<{ page: Page; said: string[]; asked: string[] }> {
  const page = await browser.newPage();
  const [said, asked]: [string[], string[]] = [[], []];
  page.on("console", (message) => said.push(message.text()));
  page.on("pageerror", (error) => said.push(error.message));
  page.on("request", (request) => {
    if (!request.url().startsWith(`${service.url}/`) && !request.url().startsWith("data:")) asked.push(request.url());
  });
  await page.goto(`${service.url}${target}`);
  await page.waitForSelector(".opblock");
  return { page, said, asked };
}

t.test("The page shows every operation of each variant, asks no other server and logs nothing", { skip }, async (t) => {
  for (const variant of ["A", "B"]) {
    const { page, said, asked } = await open(`/docs?variant=${variant.toLowerCase()}`);
    t.match(await page.textContent("h1.title, h2.title"), `Coupon service, Variant ${variant}`);
    const shown = await page.$$eval(".opblock", (blocks) =>
      blocks.map((block) => [
        block.querySelector(".opblock-summary-method")?.textContent,
        block.querySelector(".opblock-summary-path")?.getAttribute("data-path"),
      ]),
    );
    for (const { method, path } of routes)
      t.ok(
        shown.some(([one, at]) => one === method && at === path),
        `${method} ${path}`,
      );
    await page.click(".opblock-summary-control >> nth=0");
    await page.waitForSelector(".responses-table");
    t.equal(await page.$$eval(".try-out__btn, .execute", (buttons) => buttons.length), 0, "it sends no call");
    t.strictSame([said, asked], [[], []]);
    await page.close();
  }
});

t.test("The link to an error code shows its row, also after the reference is drawn", { skip }, async (t) => {
  const codes = Object.keys(errors);
  for (const code of [codes[0]!, codes.at(-1)!]) {
    const { page, said } = await open(`/docs#error-${code}`);
    const row = page.locator(`#error-${code}`);
    await row.waitFor();
    const place = `document.getElementById("error-${code}").getBoundingClientRect()`;
    // A browser scrolls to whole pixels. page.waitForFunction would evaluate its text within the page, which the
    // policy forbids.
    await waitUntil("the row to be in view", () =>
      page.evaluate(`${place}.top > -1 && ${place}.bottom <= innerHeight`),
    );
    fits(t, await row.textContent(), code);
    t.strictSame(said, []);
    await page.close();
  }
});
