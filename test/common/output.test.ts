// Standard output as a file on a small disk, and as a pipe whose reader leaves.
import { spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import path from "node:path";
import { text } from "node:stream/consumers";
import t from "tap";
import { newWebhookSecret } from "../../src/crypto/webhook-signature.ts";
import { fits } from "../support/fits.ts";
import { environmentOf, exitCodeOf, spawnProgram } from "../support/program.ts";
import { startService } from "../support/service.ts";
import { canMount, mountSmallDisk, unmount } from "../support/small-disk.ts";
import { makeTemporaryFolder, removeFolder } from "../support/temporary-folder.ts";
import { party } from "../support/tenants.ts";

const writer = `
  const { writeOutput } = await import(${JSON.stringify(new URL("../../src/common/output.ts", import.meta.url).href)});
  await writeOutput("x".repeat(Number(process.argv[1])) + "\\n").catch((error) => {
    console.error(error.message);
    process.exitCode = 1;
  });`;
const write = (length: number, output: number | "pipe") =>
  spawn(process.execPath, ["--input-type=module", "-e", writer, String(length)], { stdio: ["ignore", output, "pipe"] });

const skip = canMount() ? false : "only root may mount a small disk";

t.test("A file that cannot take all of it is an error", { skip }, async (t) => {
  const folder = makeTemporaryFolder("coupon-output-", (abandoned) => unmount(path.join(abandoned, "disk")));
  const disk = mountSmallDisk(path.join(folder, "disk"), 64 * 1024)!;
  t.teardown(() => {
    unmount(disk);
    removeFolder(folder);
  });
  const file = path.join(disk, "output");
  for (const [length, code, said] of [
    [60_000, 0, /^$/],
    [200_000, 1, /^standard output does not have everything: ENOSPC: no space left on device, write\n$/],
  ] as const) {
    const output = openSync(file, "w");
    const program = write(length, output);
    closeSync(output);
    const stderr = text(program.stderr!);
    t.equal(await exitCodeOf(program), code);
    fits(t, await stderr, said);
    if (code === 0) t.equal(readFileSync(file, "utf8"), `${"x".repeat(length)}\n`);
  }
});

t.test("A pipe gets all of it, or its reader left and it is an error", async (t) => {
  const whole = write(1_000_000, "pipe");
  t.equal((await text(whole.stdout!)).length, 1_000_001);
  t.equal(await exitCodeOf(whole), 0);
  const left = write(1_000_000, "pipe");
  const stderr = text(left.stderr!);
  left.stdout!.once("data", () => left.stdout!.destroy());
  t.equal(await exitCodeOf(left), 1);
  t.equal(await stderr, "standard output does not have everything: it was closed\n");
});

t.test("A command whose result is lost fails", async (t) => {
  const service = await startService(t);
  const { id } = await service.makeBatch(service.as("ak_a"), "tpl_fixed", 1);
  const webhook = { url: "https://receiver.example/events", secret: newWebhookSecret() };
  const credentials = [{ access_key: "ak_new" }];
  const tenant = { id: "ten_new", name: "New", variant: "A", parties: [party("pty_new", { webhook })], credentials };
  for (const [name, ...args] of [
    ["apply", "-"],
    ["codes", id],
    ["webhooks", "rotate", "ten_new", "pty_new", "--reason", "leaked"],
    ["statements", "list", "--json"],
    ["statements", "verify"],
    ["migrate", "--status"],
  ] as const) {
    const full = openSync("/dev/full", "w");
    const program = spawnProgram(name, { args: [...args], env: environmentOf(service), stdio: ["pipe", full, "pipe"] });
    closeSync(full);
    program.stdin!.end(JSON.stringify({ tenants: [tenant] }));
    const stderr = text(program.stderr!);
    const code = await exitCodeOf(program);
    fits(t, [code, await stderr], [1, /^standard output does not have everything: ENOSPC/m], [name, ...args].join(" "));
  }
});
