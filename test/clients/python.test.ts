// The tests of clients/python: of the client alone, and with a service behind a network that cuts answers and behind
// https. PYTHON_CLIENT_CALLS says how many calls look for leaks; 10,000 take a minute.
import { spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { text } from "node:stream/consumers";
import { generateX25519Identity, identityToRecipient } from "age-encryption";
import t, { type Test } from "tap";
import { newWebhookSecret } from "../../src/crypto/webhook-signature.ts";
import { moveToNoon } from "../support/business-days.ts";
import type { Coupon } from "../support/caller.ts";
import { makeCertificate, startHttps } from "../support/certificate.ts";
import { root } from "../support/copy.ts";
import { findFreePort } from "../support/listen.ts";
import { startProxy } from "../support/proxy.ts";
import { scenario, type Scenario } from "../support/scenario.ts";
import { party, secretOf } from "../support/tenants.ts";
import { waitFor } from "../support/wait-until.ts";
import { startWorker } from "../support/workers.ts";

const skip = spawnSync("python3", ["--version"]).error !== undefined && "python3 is not installed";
const certificate = makeCertificate(t.testdir({}), "IP:127.0.0.1");

// Runs the tests of one Python file. Each of them is a test here, with its docstring as title.
async function runTests(t: Test, file: string, given: object | null): Promise<void> {
  const program = spawn("python3", ["-W", "error", "-m", "unittest", "-v", file], {
    cwd: path.join(root, "clients/python"),
    env: {
      PATH: process.env["PATH"],
      PYTHONDONTWRITEBYTECODE: "1",
      ...(given !== null && { COUPON_TEST: JSON.stringify(given) }),
    },
  });
  t.teardown(() => program.kill("SIGKILL"));
  const output = await waitFor(`the tests of ${file}`, text(program.stderr));
  const results = [...output.matchAll(/^(.+) \.\.\. (?:[^]*?)(ok|FAIL|ERROR|skipped .*)$/gm)];
  for (const [, title = "", result] of results) t.equal(result, "ok", title);
  t.equal(/^Ran (\d+) tests/m.exec(output)?.[1], String(results.length), output);
  t.match(output, /\nOK\n$/, output);
}

t.test("the Python client alone", { skip }, async (t) => {
  for (const file of ["test_coupon_client", "test_types"]) await runTests(t, file, null);
});

t.test(
  "the Python client with the service",
  { skip: skip || (certificate === null && "openssl is not installed") },
  async (t) => {
    const service = await scenario(t, { http: true });
    const receiverPort = await findFreePort();
    const webhookSecret = newWebhookSecret();
    const webhook = { url: `http://127.0.0.1:${receiverPort}/`, secret: webhookSecret };
    const public_key = await identityToRecipient(await generateX25519Identity());
    const parties = [{ id: "pty_a", name: "pty_a", time_zone: "Europe/Berlin", webhook, public_key }];
    const maker = party("pty_maker", { public_key });
    await service.apply({
      tenants: [
        { id: "ten_a", name: "A", variant: "A", parties },
        { id: "ten_b", name: "B", variant: "B", parties: [maker] },
      ],
    });
    await closeDay(service);
    const { a, b } = service;
    const forA = await a.makeCoupons(10, "ISSUED", "tpl_percent");
    const forB = await b.makeCoupons(4);
    const forCuts = await a.makeCoupons(60, "ISSUED", "tpl_percent");
    const codesOf = (coupons: Coupon[]) => coupons.map(({ code }) => code);
    await startWorker(t, service);
    const { port } = new URL(service.url);
    const proxy = await startProxy({ host: "127.0.0.1", port: Number(port) });
    t.teardown(() => proxy.stop());
    // Of three answers one is lost: the first, the fourth and so on.
    let answers = 0;
    proxy.set({ cutsAnswer: () => (answers += 1) % 3 === 1 });
    const folder = t.testdir({});
    const redemptionsFile = path.join(folder, "redemptions.json");
    const keys = ["ak_a", "ak_maker", "ak_dist", "ak_pos"];

    await runTests(t, "test_with_service", {
      url: service.url,
      secrets: Object.fromEntries(keys.map((key) => [key, secretOf(key)])),
      codesA: codesOf(forA),
      codesB: codesOf(forB),
      receiverPort,
      webhookSecret,
      tlsUrl: await startHttps(t, certificate!, service.url),
      caFile: certificate!.file,
      cutUrl: `http://127.0.0.1:${proxy.port}`,
      cutCodes: codesOf(forCuts),
      redemptionsFile,
      calls: Number(process.env["PYTHON_CLIENT_CALLS"] ?? 500),
    });

    t.ok(answers > 80, `${answers} answers, of which one in three was cut`);
    const rows = await service.owner.rows<{ redemption: string; redeemed: number }>(
      `select r.redemption, (select count(*)::int from report.ledger l where l.redemption = r.redemption) as redeemed
     from report.redemption r where r.coupon = any($1::text[])`,
      [forCuts.map(({ id }) => id)],
    );
    t.strictSame(
      rows.map(({ redemption, redeemed }) => [redemption, redeemed]).sort(),
      (JSON.parse(readFileSync(redemptionsFile, "utf8")) as string[]).map((redemption) => [redemption, 1]).sort(),
      "each request_id has one redemption with one ledger entry, the one that the client was told of",
    );
  },
);

// A closed business day with one redemption for a distributor of each variant.
async function closeDay(service: Scenario): Promise<void> {
  const distributors = ["pty_a", "pty_dist"];
  for (const party of distributors) await moveToNoon(service, party);
  for (const { makeCoupons, till } of [service.a, service.b]) {
    const [coupon] = await makeCoupons(1);
    await till.ok.redeem(coupon!);
  }
  await service.steps.close();
  for (const party of distributors) await moveToNoon(service, party, 1);
  await service.steps.close();
}
