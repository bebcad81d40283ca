// Chromium, where it is installed. `skip` says why tests in it are left out.
import { existsSync } from "node:fs";
import { chromium, type Browser, type BrowserContextOptions, type Page } from "playwright-core";
import type { Test } from "tap";

const program = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
export const skip = program === undefined && "there is no Chromium at /usr/bin/chromium";

export async function openBrowser(t: Test): Promise<Browser> {
  const browser = await chromium.launch({ executablePath: program!, args: ["--no-sandbox"] });
  t.teardown(() => browser.close());
  return browser;
}

/** A page, what its console said, and which other servers it asked. */
export type Watched = { page: Page; said: string[]; asked: string[] };

export async function openPage(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<Watched> {
  const page = await browser.newPage(options);
  const [said, asked]: [string[], string[]] = [[], []];
  page.on("console", (message) => said.push(message.text()));
  page.on("pageerror", (error) => said.push(error.message));
  page.on("request", (request) => {
    if (!request.url().startsWith(`${url}/`) && !request.url().startsWith("data:")) asked.push(request.url());
  });
  return { page, said, asked };
}
