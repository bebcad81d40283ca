// Runs docs/examples: one coupon's life in four forms. They print the same lines, those that docs/examples/README.md
// shows, and leave the same redemptions. Each form runs before a business day has closed, and again after that.
import { execFile } from "node:child_process";
import { createHash, createHmac, type Hash, type Hmac } from "node:crypto";
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { runInNewContext } from "node:vm";
import t, { type Test } from "tap";
import { root } from "../support/copy.ts";
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

// coupon.http has no lists, suspension and quotes.
const notInHttpFile = /^(list_(batches|redemptions)|(suspend|resume)_batch|get_redemption|query (?!VOIDED))/;

type Play = (service: DocsService, expected: string[]) => Promise<string[]>;

const script =
  (file: string): Play =>
  async (service) =>
    linesOf(await run(service, commandWith(file)));
const forms: { name: string; skip: boolean; play: Play }[] = [
  { name: "curl", skip: false, play: script("coupon.sh") },
  { name: "TypeScript", skip: false, play: script("coupon.ts") },
  { name: "Python", skip: isWithoutPython, play: script("coupon.py") },
  { name: ".http", skip: false, play: playHttpFile },
];

t.test("One coupon's life is the same in all forms of docs/examples", async (t) => {
  const service = await startDocsService(t);
  copyExamples(service);
  await startReceiver(t, service);
  const first = linesOf(onFirstDay);
  for (const { name, skip, play } of forms)
    await t.test(`${name}, before a day has closed`, { skip }, (t) => check(t, service, first, play));

  await service.closeDay();
  const count = forms.filter(({ skip }) => !skip).length;
  const totals = `,${count * 2},${count * 10}.00,${count * 2},-${count * 10}.00,`;
  const ofAll = linesOf(onLaterDays.replace(",2,10.00,2,-10.00,", totals));
  const later = first.flatMap((line) => (line.startsWith("list_reconciliations") ? ofAll : [line]));
  for (const { name, skip, play } of forms)
    await t.test(`${name}, with the statement of a day`, { skip }, (t) => check(t, service, later, play));
});

async function check(t: Test, service: DocsService, lines: string[], play: Play) {
  const expected = play === playHttpFile ? lines.filter((line) => !notInHttpFile.test(line)) : lines;
  const readRedemptions = async () => {
    const rows = await service.superuser.rows(
      `select merchant, caller, store, terminal, discount_amount::text, status, reversal_reason, order_id,
              order_amount::text
       from report.redemption where tenant = 'ten_demob' order by redemption_key`,
    );
    return rows.map((row) => ({ ...row }));
  };
  const before = await readRedemptions();
  t.strictSame(await play(service, expected), expected, "what it prints");
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

async function playHttpFile(service: DocsService, expected: string[]): Promise<string[]> {
  await run(service, commandWith("environment.sh"));
  const examples = path.join(service.folder, "docs/examples");
  const player = createPlayer(examples, "demo");
  const lines: string[] = [];
  for (const step of readHttpFile(readFileSync(path.join(examples, "coupon.http"), "utf8"))) {
    if ("command" in step) await run(service, step.command.replace("bat_…", player.globals.get("batch")!));
    else if (player.isReady(step)) lines.push(...(await sendUntil(step, expected[lines.length]!)));
  }
  return linesOf(lines.join("\n"));

  // A reader sends some of the GET requests again until the answer is there.
  async function sendUntil(request: HttpRequest, line: string): Promise<string[]> {
    let logged = await player.send(request);
    for (let attempt = 1; attempt <= 400 && request.method === "GET"; attempt += 1) {
      if (linesOf(logged[0]!)[0] === line) break;
      await sleep(250);
      logged = await player.send(request);
    }
    return logged;
  }
}

// The rest sends requests as the HTTP Client of JetBrains does, with the features that coupon.http uses: variables, an
// environment file, and scripts before a request and after its answer. A player for all features would bring 213
// packages; after a change of coupon.http or sign.js, run the file in one, such as httpYac.

type HttpRequest = Record<"title" | "scriptFile" | "method" | "url" | "handler", string> & {
  headers: [name: string, value: string][];
  body: string | undefined;
};
/** A comment that tells the reader what to do in a terminal. */
type Command = { command: string };

const requestPattern = new RegExp(
  [
    /^(?<title>.*)\n/,
    /< (?<scriptFile>\S+)\n/,
    /(?<method>GET|POST) (?<url>\S+)\n/,
    /(?<headers>(?:[\w-]+: .*\n)+)/,
    /(?:\n(?<body>\{[^]*?)\n)?/,
    /\n> \{%(?<handler>[^]*?)%\}\n/,
  ]
    .map(({ source }) => source)
    .join(""),
);

function readHttpFile(text: string): (HttpRequest | Command)[] {
  return text
    .split(/^### /m)
    .slice(1)
    .flatMap((section) => {
      const groups = requestPattern.exec(section)?.groups;
      if (groups === undefined) throw new Error(`the test cannot read the request ${section}`);
      const headers = groups["headers"]!.trim().split("\n");
      const request = { ...groups, headers: headers.map((line) => line.split(": ")) } as unknown as HttpRequest;
      return [request, ...[...section.matchAll(/^# (bash .*)$/gm)].map(([, command = ""]) => ({ command }))];
    });
}

function createPlayer(folder: string, environmentName: string) {
  const globals = new Map<string, string>();
  const file = path.join(folder, "http-client.private.env.json");
  const readEnvironment = (): Record<string, string> => JSON.parse(readFileSync(file, "utf8"))[environmentName];
  const fill = (text = "", own = new Map<string, string>()): string =>
    text.replace(
      /\{\{(\w+)\}\}/g,
      (whole, name: string) => readEnvironment()[name] ?? globals.get(name) ?? own.get(name) ?? whole,
    );

  return {
    globals,
    /** Whether all variables of the request have values. */
    isReady: ({ url, body }: HttpRequest): boolean => !fill(url + (body ?? "")).includes("{{"),
    /** Sends the request and returns what its handler logged. */
    async send({ title, scriptFile, method, url, headers, body, handler }: HttpRequest): Promise<string[]> {
      const own = new Map<string, string>();
      const logged: string[] = [];
      const client = { global: globals, log: (line: string) => logged.push(line) };
      const substitutable = (text = "") => ({ getRaw: () => text, tryGetSubstituted: () => fill(text, own) });
      const findByName = (name: string) => ({ getRawValue: () => headers.find(([other]) => other === name)![1] });
      const request = {
        method,
        url: substitutable(url),
        body: substitutable(body),
        headers: { findByName },
        environment: { get: (name: string) => readEnvironment()[name] },
        variables: own,
      };
      runInNewContext(readFileSync(path.join(folder, scriptFile), "utf8"), { client, crypto, request });

      const filled = headers.map(([name, value]): [string, string] => [name, fill(value, own)]);
      const content = body === undefined ? {} : { body: fill(body, own) };
      const reply = await fetch(fill(url, own), { method, headers: filled, ...content });
      const isJson = reply.headers.get("content-type")?.startsWith("application/json");
      const answer: unknown = isJson ? await reply.json() : await reply.text();
      if (reply.status !== 200) throw new Error(`${title}: ${reply.status} ${JSON.stringify(answer)}`);
      runInNewContext(handler, { client, response: { status: reply.status, body: answer } });
      return logged;
    },
  };
}

/** The crypto object of JetBrains' scripts. */
const crypto = {
  sha256: () => build(createHash("sha256")),
  hmac: { sha256: () => ({ withTextSecret: (secret: string) => build(createHmac("sha256", secret)) }) },
};

function build(hash: Hash | Hmac) {
  return {
    updateWithText: (text: string) => build(hash.update(text)),
    digest: () => ({ toHex: () => hash.digest("hex") }),
  };
}
