// The console as a browser uses it, without scripts.
import type { Test } from "tap";
import { openConsole as open } from "../../src/console.ts";
import { pages } from "../../src/console/pages/table.ts";
import type { Address } from "../../src/config/database-address.ts";
import type { MasterKeys } from "../../src/crypto/keys.ts";
import { readCsv } from "./csv.ts";
import { createStubLog } from "./stub.ts";

type Options = { form?: Record<string, string>; headers?: Record<string, string> };
type Answer = { status: number; text: string; location: string | null; cookie: string | null };

export const staffToken = "a".repeat(40);
export const userHeader = "x-forwarded-user";

/** The page at this address. */
export const findPage = (path: string) =>
  pages.staff.find((page) => new RegExp(`^${page.path.replace(/:\w+/g, "[^/?]+")}(\\?|$)`).test(path));

/** Its port. */
export async function openPages(t: Test) {
  const { log, logger } = createStubLog("info");
  const config = { host: "127.0.0.1", port: 0, url: null, tokens: new Map([["anna", staffToken]]), userHeader };
  const opened = (await open(config, logger))!;
  t.teardown(opened.stop);
  return { ...opened, log };
}

export async function openConsole(t: Test, parts: { address: Address; keys: MasterKeys }) {
  const { url, serve, log } = await openPages(t);
  const link = await serve(parts);

  async function send(path: string, { form, headers = {} }: Options = {}): Promise<Answer> {
    const body = form === undefined ? {} : { method: "POST", body: new URLSearchParams(form) };
    const response = await fetch(url + path, { ...body, headers, redirect: "manual" });
    return {
      status: response.status,
      text: await response.text(),
      location: response.headers.get("location"),
      cookie: response.headers.get("set-cookie"),
    };
  }

  /** A browser that is signed in. */
  async function signIn(token = staffToken) {
    const { cookie } = await send("/sign-in", { form: { token } });
    const headers = { cookie: cookie!.split(";")[0]! };
    const { text } = await send("/", { headers });
    const form_token = /name="form_token" value="([\w-]+)"/.exec(text)![1]!;
    return {
      form_token,
      cookie: cookie!,
      /** The rows of a block, as texts. `title`: how its title begins. */
      async read(path: string, title: string) {
        const block = findPage(path)!.blocks.findIndex((one) => one.title.startsWith(title));
        const { text } = await send(`${path}${path.includes("?") ? "&" : "?"}csv=${block}`, { headers });
        return readCsv(text.replaceAll("\n", "\r\n"));
      },
      get: (path: string) => send(path, { headers }),
      post: (path: string, form: Record<string, string>) => send(path, { headers, form: { form_token, ...form } }),
      postAs: (path: string, form: Record<string, string>, more: Record<string, string> = {}) =>
        send(path, { form, headers: { ...headers, ...more } }),
    };
  }

  return { url, link, log, send, signIn };
}

/** What HTML escapes, as it was. */
export const unescape = (text: string): string =>
  text.replaceAll("&#39;", "'").replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
