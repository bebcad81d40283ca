// npm run webhooks -- listen: a receiver on loopback, to try webhooks with.
import { createHmac } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import t, { type Test } from "tap";
import { listen, startListener } from "../../src/commands/webhook-listener.ts";
import { ConfigError, readWebhookSecrets } from "../../src/common/config.ts";
import { formatHelp } from "../../src/common/help.ts";
import { createAddressRule } from "../../src/worker/address-rule.ts";
import { createSender } from "../../src/worker/webhook-sender.ts";
import { fits } from "../support/fits.ts";
import { findFreePort } from "../support/listen.ts";
import { exitCodeOf, spawnProgram } from "../support/program.ts";
import { loopbackOnly } from "../support/subscribers.ts";
import { waitUntil } from "../support/wait-until.ts";

const secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
const older = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const body = '{"event_id":"evt_1","event_type":"coupon.voided","note":"\u009b[31m"}';

const send = createSender({ mayConnect: createAddressRule(loopbackOnly), timeoutMs: 60_000 });

async function start(t: Test, changes: Partial<Parameters<typeof startListener>[0]> = {}) {
  const printed: string[] = [];
  const print = (line: string) => void printed.push(line.replace(/^\S+Z /, ""));
  const usual = { port: 0, secrets: [secret, older], status: 204, lateSeconds: 0, isSilent: false, print };
  const listener = await startListener({ ...usual, ...changes });
  t.teardown(listener.stop);
  const deliver = (secrets: string[], isTest = false) =>
    send({ id: "evt_1", url: listener.url, body, secrets, isTest });
  return { ...listener, printed, deliver };
}

t.test("listen verifies with both secrets, prints, and notices tests and repeats", async (t) => {
  const { deliver, printed } = await start(t);
  const shown = body.replaceAll("\u009b", "?");
  fits(t, await deliver([secret]), { httpStatus: 204 });
  fits(t, await deliver([older], true), { httpStatus: 204 });
  fits(t, await deliver([secret.replace("MDEy", "AAAA")]), { httpStatus: 401 });
  t.strictSame(printed, [
    "evt_1: genuine, answer 204",
    shown,
    "evt_1: genuine, test, seen before, answer 204",
    shown,
    "evt_1: no signature of the webhook is right, answer 401",
    shown,
  ]);
});

t.test("listen refuses what is too old or unsigned", async (t) => {
  const { url, printed } = await start(t);
  const timestamp = String(Math.floor(Date.now() / 1000) - 301);
  const key = Buffer.from(secret.slice(6), "base64");
  const signature = `v1,${createHmac("sha256", key).update(`evt_1.${timestamp}.x`).digest("base64")}`;
  const headers = { "webhook-id": "evt_1", "webhook-timestamp": timestamp, "webhook-signature": signature };
  t.equal((await fetch(url, { method: "POST", body: "x", headers })).status, 401);
  t.equal((await fetch(url, { method: "POST", body: "x" })).status, 401);
  t.strictSame(printed, [
    "evt_1: the webhook is more than 300 s off, answer 401",
    "x",
    "no webhook-id: the webhook has no webhook-id, answer 401",
    "x",
  ]);
});

t.test("listen answers wrong, late or never on request", async (t) => {
  const wrong = await start(t, { status: 500 });
  fits(t, await wrong.deliver([secret]), { httpStatus: 500 });
  const late = await start(t, { lateSeconds: 1 });
  fits(t, await late.deliver([secret]), { httpStatus: 204 });
  t.equal(late.printed[0], "evt_1: genuine, answer 204 after 1 s");
  for (const [change, line] of [
    [{ lateSeconds: 60 }, "evt_1: genuine, answer 204 after 60 s"],
    [{ isSilent: true }, "evt_1: genuine, no answer"],
  ] as const) {
    const { deliver, printed } = await start(t, change);
    const answer = deliver([secret]);
    await waitUntil("the webhook to arrive", () => printed.length > 0, { withinMs: 30_000 });
    t.equal(printed[0], line);
    t.equal(await Promise.race([answer, sleep(1_000, "no answer yet")]), "no answer yet");
  }
});

t.test("listen is a program without a database: it says where it listens, and a signal stops it", async (t) => {
  const port = await findFreePort();
  const url = `http://127.0.0.1:${port}`;
  const program = spawnProgram("webhooks", {
    args: ["listen", "--port", String(port)],
    env: { DATABASE_URL: "none", DATA_DIR: t.testdir(), WEBHOOK_SECRET: `${secret} ${older}` },
  });
  t.teardown(() => program.kill("SIGKILL"));
  let output = "";
  program.stdout!.on("data", (chunk: Buffer) => (output += chunk.toString()));
  await waitUntil("the line of listen", () => output.includes("\n"));
  t.equal(output, `listening on ${url}\n`);
  fits(t, await send({ id: "evt_1", url, body: "{}", secrets: [older], isTest: false }), { httpStatus: 204 });
  await waitUntil("the lines of a webhook", () => output.endsWith("\n{}\n"));
  t.match(output, /\n\S+Z evt_1: genuine, answer 204\n\{\}\n$/);
  program.kill("SIGTERM");
  t.equal(await exitCodeOf(program), 0);
});

t.test("listen refuses secrets, ports and statuses that make no sense", async (t) => {
  const refusalOf = (...args: string[]): string | null => {
    try {
      listen.read(args);
      return null;
    } catch (error) {
      return (error as Error).message;
    }
  };
  const wrong = ["abc", "whsec_", "whsec_abc!", "xwhsec_abc", "whsec_abc===", "whsec_=a", "whsec_abc,whsec_def"];
  for (const text of [undefined, "", " ", ...wrong, ...wrong.map((one) => `${secret} ${one}`)])
    t.throws(
      () => readWebhookSecrets({ WEBHOOK_SECRET: text }),
      new ConfigError("WEBHOOK_SECRET must hold the secret of the webhook (whsec_…), or several with spaces between"),
      String(text),
    );
  for (const good of ["whsec_abc", "whsec_ab+/09=", "whsec_abc=="])
    t.strictSame(readWebhookSecrets({ WEBHOOK_SECRET: ` ${good}\n${secret} ` }), [good, secret]);
  t.match(formatHelp("listen", listen), /--port N +the port \(3000\)\n/);
  t.strictSame([refusalOf("--port", "65535"), refusalOf("--port", "65536")], [null, "--port is at most 65535"]);
  for (const [status, refusal] of [
    ["199", "--status is from 200 to 599"],
    ["200", null],
    ["599", null],
    ["600", "--status is from 200 to 599"],
  ] as const)
    t.equal(refusalOf("--status", status), refusal, status);
});
