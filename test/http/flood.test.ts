// Clients that leave midway, send nothing, send slowly or read nothing: the process survives, writes nothing to
// standard error, and serves every other client.
import type { ChildProcessWithoutNullStreams } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import t from "tap";
import { createClient, type Client } from "../support/signing-client.ts";
import { sendPlain } from "../support/client.ts";
import { cutAnswers, cutBodies, hold, pipeline, type Held, type Target } from "../support/floods.ts";
import { environmentOf, exitCodeOf, spawnProgram } from "../support/program.ts";
import { secretOf } from "../support/tenants.ts";
import { newRequestId, startService, type Running } from "../support/service.ts";
import { waitUntil } from "../support/wait-until.ts";

const merchant = "mch_a";
const honestAtOnce = 4;

// Redeems and queries each coupon. Returns how many calls were answered with 200.
async function shop(client: Client, codes: string[]): Promise<number> {
  let served = 0;
  const queue = [...codes];
  await Promise.all(
    Array.from({ length: honestAtOnce }, async () => {
      for (let coupon = queue.pop(); coupon !== undefined; coupon = queue.pop()) {
        for (const [path, body] of [
          ["redeem", { request_id: newRequestId(), coupon, merchant }],
          ["query", { coupon, merchant }],
        ] as const) {
          const { status } = await client.post(`/v1/coupons/${path}`, body);
          if (status === 200) served += 1;
        }
      }
    }),
  );
  return served;
}

type Line = { msg?: string; url?: string; status?: number; operation?: string };

async function startServe(service: Running) {
  const program = spawnProgram("serve", { env: environmentOf(service) }) as ChildProcessWithoutNullStreams;
  t.teardown(() => program.kill("SIGKILL"));
  const stderr = text(program.stderr);
  const lines: Line[] = [];
  createInterface(program.stdout).on("line", (text) => lines.push(JSON.parse(text) as Line));
  const { url } = await waitUntil("serve to listen", () => lines.find(({ msg }) => msg === "serving"));
  return { program, stderr, lines, url: url! };
}

t.test(
  "A flood of clients that leave, idle, drip or pipeline causes no crash, and every honest call is served",
  async (t) => {
    const service = await startService(t);
    const { program, stderr, lines, url } = await startServe(service);
    const target: Target = { url, accessKey: "ak_a", secret: secretOf("ak_a") };
    const honest = createClient(target);
    const { codes } = await service.makeBatch(service.as("ak_a"), "tpl_fixed", 500);
    const floods: [string, () => Promise<Held | void>][] = [
      ["200 leave in the middle of a body", () => cutBodies(target, 200)],
      ["200 leave in the middle of an answer", () => cutAnswers(target, 200)],
      ["400 say nothing", () => hold(target, 400, false)],
      ["100 send their heads slowly", () => hold(target, 100, true)],
      ["300 pipeline requests of every kind and read nothing", () => pipeline(target, 300)],
    ];
    for (const [what, start] of floods) {
      const isLeaving = what.includes("leave");
      // Clients that leave do so while the honest ones work; the others are connected before.
      const flood = start();
      if (!isLeaving) await flood;
      t.equal(await shop(honest, codes.splice(0, 100)), 200, `${what}: every honest call is served`);
      const held = await flood;
      if (held && !what.includes("pipeline")) t.equal(held.open(), parseInt(what, 10), "all stay connected");
      held?.letGo();
    }
    // Linux keeps the largest size of a process.
    const peak = existsSync(`/proc/${program.pid}/status`) && readFileSync(`/proc/${program.pid}/status`, "utf8");
    if (peak) t.ok(Number(/^VmHWM:\s+(\d+) kB/m.exec(peak)![1]) < 450 * 1_024, "with less than 450 MiB of memory");
    t.equal((await sendPlain(url, "GET", "/readyz")).status, 200, "the process is ready");
    program.kill("SIGTERM");
    t.equal(await exitCodeOf(program), 0);
    t.equal(await stderr, "", "nothing on standard error");
    // Some connections are reset before they reach the handler.
    const cut = lines.filter(({ status, operation }) => status === 400 && operation === "redeem").length;
    t.ok(cut >= 100 && cut <= 200, `${cut} bodies that ended early were given up, and the service waits for none`);
  },
);
