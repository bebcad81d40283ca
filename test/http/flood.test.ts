// Clients that leave midway, send nothing or send slowly: the process survives, writes nothing to standard error, and
// other clients notice little. A short form of `npm run bench -- floods`.
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import t from "tap";
import { createClient, type Client } from "../../src/commands/client.ts";
import { sendPlain } from "../support/client.ts";
import { cutAnswers, cutBodies, hold, type Held, type Target } from "../support/floods.ts";
import { exitCodeOf, startProgram } from "../support/program.ts";
import { secretOf } from "../support/provisioning.ts";
import { newRequestId, startService, type Running } from "../support/service.ts";

const merchant = "mch_a";
// No till notices a latency below this. Other test files run at the same time.
const unnoticedMs = 150;
const honestAtOnce = 4;

// Milliseconds that an honest client waits for a redemption and a query of each coupon.
async function shop(client: Client, codes: string[]): Promise<number[]> {
  const took: number[] = [];
  const queue = [...codes];
  await Promise.all(
    Array.from({ length: honestAtOnce }, async () => {
      for (let coupon = queue.pop(); coupon !== undefined; coupon = queue.pop()) {
        for (const [path, body] of [
          ["redeem", { request_id: newRequestId(), coupon, merchant }],
          ["query", { coupon, merchant }],
        ] as const) {
          const since = performance.now();
          const { status, text: answer } = await client.post(`/v1/coupons/${path}`, body);
          took.push(performance.now() - since);
          if (status !== 200) throw new Error(`${path}: ${status} ${answer}`);
        }
      }
    }),
  );
  return took;
}
const p99 = (took: number[]) => took.toSorted((a, b) => a - b)[Math.floor(took.length * 0.99)]!;

type Line = { msg?: string; url?: string; status?: number; operation?: string };

async function startServe(service: Running) {
  const program = startProgram(service, "serve");
  t.teardown(() => program.kill("SIGKILL"));
  const stderr = text(program.stderr);
  const lines: Line[] = [];
  const url = await new Promise<string>((resolve) =>
    createInterface(program.stdout).on("line", (text) => {
      const line = JSON.parse(text) as Line;
      lines.push(line);
      if (line.msg === "serving") resolve(line.url!);
    }),
  );
  return { program, stderr, lines, url };
}

t.test(
  "A flood of clients that leave, idle or drip causes no crash or unhandled error, and delays no honest client",
  async (t) => {
    const service = await startService(t);
    const { program, stderr, lines, url } = await startServe(service);
    const target: Target = { url, accessKey: "ak_a", secret: secretOf("ak_a") };
    const honest = createClient(target);
    const { codes } = await service.makeBatch(service.as("ak_a"), "tpl_fixed", 700);
    const next = () => codes.splice(0, 100);
    await shop(honest, next());
    const without = p99(await shop(honest, next()));
    // Clients that ask for an answer use the service's time, whether they stay or leave.
    const staying = cutAnswers(target, 200, true);
    const besideStaying = p99(await shop(honest, next()));
    await staying;

    const floods: [string, () => Promise<Held | void>, number?][] = [
      ["200 leave in the middle of a body", () => cutBodies(target, 200)],
      ["200 leave in the middle of an answer", () => cutAnswers(target, 200), besideStaying],
      ["400 say nothing", () => hold(target, 400, false)],
      ["100 send their heads slowly", () => hold(target, 100, true)],
    ];
    for (const [what, start, otherwise = without] of floods) {
      const isLeaving = what.includes("leave");
      // Clients that leave do so while the honest ones work; the others are connected before.
      const flood = start();
      if (!isLeaving) await flood;
      const during = p99(await shop(honest, next()));
      const held = await flood;
      if (held) t.equal(held.open(), parseInt(what, 10), "all stay connected");
      held?.letGo();
      t.ok(
        during <= Math.max(2 * otherwise, unnoticedMs),
        `${what}: p99 ${during.toFixed(1)} ms, ${otherwise.toFixed(1)} ms without`,
      );
    }
    t.equal((await sendPlain(url, "GET", "/readyz")).status, 200, "the process is ready");
    program.kill("SIGTERM");
    t.equal(await exitCodeOf(program), 0);
    t.equal(await stderr, "", "nothing on standard error");
    // Some connections are reset before they reach the handler.
    const cut = lines.filter(({ status, operation }) => status === 400 && operation === "redeem").length;
    t.ok(cut >= 100 && cut <= 200, `${cut} bodies that ended early were given up, and the service waits for none`);
  },
);
