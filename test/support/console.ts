// The console of a scenario, and browsers that are signed in to it.
import { startConsole } from "../../src/console.ts";
import { pages } from "../../src/console/pages/table.ts";
import { readCsv } from "./csv.ts";
import type { Scenario, Teardown } from "./scenario.ts";
import { createStubLog } from "./stub.ts";

type Options = { form?: Record<string, string>; headers?: Record<string, string> };
type Answer = { status: number; text: string; location: string | null; cookie: string | null };

/** The page at this address. */
export const findPage = (path: string) =>
  pages.find((page) => new RegExp(`^${page.path.replace(/:\w+/g, "[^/?]+")}(\\?|$)`).test(path));

export async function openConsole(t: Teardown, { address, keys }: Pick<Scenario, "address" | "keys">) {
  const { log, logger } = createStubLog("info");
  const tokens = new Map([["anna", "a".repeat(40)]]);
  const config = { host: "127.0.0.1", port: 0, tokens, userHeader: "x-forwarded-user" };
  const { url, link, stop } = await startConsole({ address, keys, config, log: logger });
  t.teardown(stop);

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
  async function signIn(token = tokens.get("anna")!) {
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

  return { url, link, log, tokens, send, signIn };
}
