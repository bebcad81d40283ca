// Runs docs/examples: one coupon's life in four forms. They print the same lines, those that docs/examples/README.md
// shows, and leave the same redemptions. Each form runs before a business day has closed, and again after that.
import { execFile, spawnSync } from "node:child_process";
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import t, { type Test } from "tap";
import { root } from "../support/copy.ts";
import { waitUntil } from "../support/wait-until.ts";
import { createPlayer, readHttpFile, type HttpRequest } from "./http-file.ts";
import { read, readBlocks } from "./markdown.ts";
import { environmentOf, setPorts, startDocsService, type DocsService } from "./service.ts";
import { openShell } from "./shell.ts";

const blocks = readBlocks(read("docs/examples/README.md"));
const commandWith = (word: string) =>
  blocks.find(({ language, text }) => language === "bash" && text.includes(word))!.text;
const [onFirstDay = "", onLaterDays = ""] = blocks
  .filter(({ language }) => language === "text")
  .map(({ text }) => text);
const linesOf = (text: string) =>
  text
    .trimEnd()
    .split("\n")
    .map((line) => line.replaceAll(/\d{4}-\d\d-\d\d/g, "DATE"));
const isWithoutPython = spawnSync("python3", ["--version"]).error !== undefined;

// Each order of the story, as the service has recorded it.
const place = { merchant: "mch_corner", caller: "pty_pos", store: "S1", terminal: "T1", discount_amount: "5.00" };
const returned = { ...place, status: "REVERSED", reversal_reason: "goods returned" };
const redemptions = [
  { ...returned, order_id: "4711", order_amount: "45.50" },
  { ...returned, order_id: "4712", order_amount: "24.90" },
  { ...place, status: "CANCELLED", reversal_reason: null, order_id: "4713", order_amount: "60.00" },
];

type Form = { name: string; skip: string | false; play: (expected: string[]) => Promise<string[]> };

t.test("one coupon's life is the same in all forms of docs/examples", async (t) => {
  const service = await startDocsService();
  t.teardown(() => service.stop());
  copyExamples(service);
  await startReceiver(t, service);
  const script = (file: string) => async () => linesOf(await run(service, commandWith(file)));
  const forms: Form[] = [
    { name: "curl", skip: false, play: script("coupon.sh") },
    { name: "TypeScript", skip: false, play: script("coupon.ts") },
    { name: "Python", skip: isWithoutPython && "python3 is not installed", play: script("coupon.py") },
    { name: ".http", skip: false, play: (expected) => playHttpFile(service, expected) },
  ];
  const count = forms.filter(({ skip }) => skip === false).length;

  const first = linesOf(onFirstDay);
  for (const { name, skip, play } of forms)
    await t.test(`${name}, before a day has closed`, { skip }, (t) => check(t, service, first, play));

  await service.closeDay();
  const ofAll = onLaterDays.replace(
    ",2,10.00,2,-10.00,",
    `,${count * 2},${count * 10}.00,${count * 2},-${count * 10}.00,`,
  );
  const later = first.flatMap((line) => (line.startsWith("list_reconciliations") ? linesOf(ofAll) : [line]));
  for (const { name, skip, play } of forms)
    await t.test(`${name}, with the statement of a day`, { skip }, (t) => check(t, service, later, play));
});

async function check(t: Test, service: DocsService, expected: string[], play: Form["play"]) {
  const before = await readRedemptions(service);
  t.strictSame(await play(expected), expected, "what it prints");
  t.strictSame((await readRedemptions(service)).slice(before.length), redemptions, "what the service has recorded");
}

// The examples as files of their own, so that the webhook has the port of the receiver.
function copyExamples(service: DocsService): void {
  const docs = path.join(service.folder, "docs");
  rmSync(docs);
  cpSync(path.join(root, "docs"), docs, { recursive: true });
  const file = path.join(docs, "examples/webhook.json");
  writeFileSync(file, setPorts(service, readFileSync(file, "utf8")));
}

// The second terminal of the README: a receiver of webhooks, which listens before the first event.
async function startReceiver(t: Test, service: DocsService): Promise<void> {
  const terminal = openShell(service.folder, environmentOf(service), service.scratch);
  t.teardown(() => terminal.close());
  void terminal.run(setPorts(service, commandWith("listen")));
  const url = `http://127.0.0.1:${service.receiverPort}/`;
  const isListening = () =>
    fetch(url).then(
      () => true,
      () => false,
    );
  await waitUntil("the receiver of webhooks", isListening, { withinMs: 30_000 });
}

// A command that fails rejects, and the error has what it printed.
async function run(service: DocsService, command: string): Promise<string> {
  const options = { cwd: service.folder, env: environmentOf(service), timeout: 120_000 };
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

async function readRedemptions(service: DocsService): Promise<Record<string, unknown>[]> {
  const session = service.openSql("coupon_report");
  try {
    const rows = await session.rows(
      `select merchant, caller, store, terminal, discount_amount::text, status, reversal_reason, order_id,
              order_amount::text
       from report.redemption where tenant = 'ten_demob' order by redemption_key`,
    );
    return rows.map((row) => ({ ...row }));
  } finally {
    await session.end();
  }
}
