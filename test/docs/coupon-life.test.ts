// Runs docs/examples: one coupon's life in four forms. They print the same lines, those that docs/examples/README.md
// shows, and leave the same redemptions. All forms run when a business day has closed, one also before that.
import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { runInNewContext } from "node:vm";
import t, { type Test } from "tap";
import { root } from "../support/copy.ts";
import { CryptoJS } from "../support/crypto-js.ts";
import { waitUntil } from "../support/wait-until.ts";
import { read, readBlocks } from "./markdown.ts";
import { isWithoutPython, openShell, startDocsService, type DocsService } from "./service.ts";

const blocks = readBlocks(read("docs/examples/README.md"));
const textsOf = (language: string) => blocks.filter((block) => block.language === language).map(({ text }) => text);
const commandWith = (word: string) => textsOf("bash").find((text) => text.includes(word))!;
const [onFirstDay = "", onLaterDays = ""] = textsOf("text");
const linesOf = (text: string) =>
  text
    .trimEnd()
    .replaceAll(/\d{4}-\d\d-\d\d/g, "DATE")
    .split("\n");

// Each order of the story, as the service has recorded it.
const place = { merchant: "mch_corner", caller: "pty_pos", store: "S1", terminal: "T1", discount_amount: "5.00" };
const returned = { ...place, status: "REVERSED", reversal_reason: "goods returned" };
const redemptions = [
  { ...returned, order_id: "4711", order_amount: "45.50" },
  { ...returned, order_id: "4712", order_amount: "24.90" },
  { ...place, status: "CANCELLED", reversal_reason: null, order_id: "4713", order_amount: "60.00" },
];

type Play = (service: DocsService) => Promise<string[]>;

const script =
  (file: string): Play =>
  async (service) =>
    linesOf(await run(service, commandWith(file)));
const forms: { name: string; skip?: boolean; isQuick?: boolean; play: Play }[] = [
  { name: "curl", play: script("coupon.sh") },
  { name: "TypeScript", isQuick: true, play: script("coupon.ts") },
  { name: "Python", skip: isWithoutPython, play: script("coupon.py") },
  { name: "Postman", play: playCollection },
];

t.test("One coupon's life is the same in all forms of docs/examples", async (t) => {
  const service = await startDocsService(t);
  copyExamples(service);
  await startReceiver(t, service);
  const { name, play } = forms.find(({ isQuick }) => isQuick)!;
  await t.test(`${name}, before a day has closed`, (t) => check(t, service, linesOf(onFirstDay), play));
  await service.closeDay();
  const ofDay = linesOf(onLaterDays);
  const later = linesOf(onFirstDay).flatMap((line) => (line.startsWith("list_reconciliations") ? ofDay : [line]));
  for (const { name, skip = false, play } of forms)
    await t.test(`${name}, with the statement of a day`, { skip }, (t) => check(t, service, later, play));
});

async function check(t: Test, service: DocsService, expected: string[], play: Play) {
  const readRedemptions = async () => {
    const rows = await service.superuser.rows(
      `select merchant, caller, store, terminal, discount_amount::text, status, reversal_reason, order_id,
              order_amount::text
       from report.redemption where tenant = 'ten_demob' order by redemption_key`,
    );
    return rows.map((row) => ({ ...row }));
  };
  const before = await readRedemptions();
  t.strictSame(await play(service), expected, "what it prints");
  t.strictSame((await readRedemptions()).slice(before.length), redemptions, "what the service has recorded");
}

// The examples as files of their own, so that the webhook has the port of the receiver.
function copyExamples(service: DocsService): void {
  const docs = path.join(service.folder, "docs");
  rmSync(docs);
  cpSync(path.join(root, "docs"), docs, { recursive: true });
  const file = path.join(docs, "examples/webhook.json");
  writeFileSync(file, service.setPorts(readFileSync(file, "utf8")));
}

// The second terminal of the README: a receiver of webhooks, which listens before the first event.
async function startReceiver(t: Test, service: DocsService): Promise<void> {
  const terminal = openShell(service, service.scratch);
  t.teardown(() => terminal.close());
  void terminal.run(service.setPorts(commandWith("listen")));
  const answers = () => fetch(`http://127.0.0.1:${service.receiverPort}/`).catch(() => null);
  await waitUntil("the receiver of webhooks", answers, { withinMs: 30_000 });
}

// A command that fails rejects, and the error has what it printed.
async function run(service: DocsService, command: string): Promise<string> {
  const options = { cwd: service.folder, env: service.environment, timeout: 120_000 };
  const { stdout } = await promisify(execFile)("bash", ["-e", "-o", "pipefail", "-c", command], options);
  return stdout;
}

// A reader sends the requests of both folders from top to bottom, and a command between them.
async function playCollection(service: DocsService): Promise<string[]> {
  const file = path.join(service.folder, "docs/examples/postman-b.json");
  const collection: Collection = JSON.parse(readFileSync(file, "utf8"));
  const values = new Map(collection.variable.map(({ key, value }) => [key, value]));
  const secrets = JSON.parse(await run(service, commandWith("demo.json"))) as Record<string, string>;
  for (const name of ["maker", "till", "distributor"]) values.set(`${name}_secret`, secrets[values.get(name)!]!);
  values.set("url", service.environment.SERVICE);
  const [ordering, redeeming] = collection.item as [Folder, Folder];
  const lines = await sendAll(collection.event, ordering.item, values);
  const csv = await run(service, commandWith("codes").replace("bat_…", values.get("batch")!));
  values.set("code", csv.split("\n")[1]!.split(",")[1]!.trim());
  return linesOf([...lines, ...(await sendAll(collection.event, redeeming.item, values))].join("\n"));
}

// The rest runs requests as Postman does, with what the collection uses of it. newman would bring 140 packages; after a
// change of the scripts, run the collection in it once: `npx newman run`.

type Script = { listen: "prerequest" | "test"; script: { exec: string[] } };
type Item = {
  name: string;
  event?: Script[];
  request: { method: string; header: { key: string; value: string }[]; url: { raw: string }; body?: { raw: string } };
};
type Folder = { item: Item[] };
type Collection = { variable: { key: string; value: string }[]; event: Script[]; item: Folder[] };

/** Returns what the scripts log. */
async function sendAll(shared: Script[], items: Item[], values: Map<string, string>): Promise<string[]> {
  const lines: string[] = [];
  for (let index = 0; index < items.length;) {
    const { isAgain } = await send(shared, items[index]!, values, lines);
    if (!isAgain) index += 1;
  }
  return lines;
}

async function send(
  shared: Script[],
  { name, event = [], request }: Item,
  values: Map<string, string>,
  lines: string[],
) {
  const fill = (text: string) =>
    text.replace(/\{\{(\$?\w+)\}\}/g, (whole, key: string) =>
      key === "$guid" ? randomUUID() : (values.get(key) ?? whole),
    );
  const headers = new Map(request.header.map(({ key, value }) => [key, value]));
  const pauses: Promise<void>[] = [];
  let [isSkipped, isAgain] = [false, false];
  const variables = { get: (key: string) => values.get(key), set: values.set.bind(values), replaceIn: fill };
  const pm = {
    info: { requestName: name, requestId: name },
    request: {
      method: request.method,
      url: { toString: () => request.url.raw },
      headers: {
        get: headers.get.bind(headers),
        upsert: (one: Record<string, string>) => headers.set(one["key"]!, one["value"]!),
      },
      body: request.body,
    },
    variables,
    collectionVariables: variables,
    execution: { skipRequest: () => (isSkipped = true), setNextRequest: () => (isAgain = true) },
    test: (_: string, check: () => void) => check(),
    response: {},
  };
  const context = {
    pm,
    require: () => CryptoJS,
    console: { log: (line: string) => lines.push(line) },
    setTimeout: (_: unknown, ms: number) => void pauses.push(sleep(ms)),
  };
  const play = (listen: Script["listen"]) => {
    for (const { script } of [...shared, ...event].filter((one) => one.listen === listen))
      runInNewContext(script.exec.join("\n"), context);
  };

  play("prerequest");
  if (isSkipped) return { isAgain };
  const filled = [...headers].map(([key, value]): [string, string] => [key, fill(value)]);
  const body = request.body === undefined ? {} : { body: fill(request.body.raw) };
  const reply = await fetch(fill(request.url.raw), { method: request.method, headers: filled, ...body });
  const text = await reply.text();
  pm.response = { code: reply.status, headers: reply.headers, text: () => text, json: () => JSON.parse(text) };
  play("test");
  await Promise.all(pauses);
  return { isAgain };
}
