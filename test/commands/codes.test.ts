// npm run codes, as an operator runs it.
import t from "tap";
import { fits } from "../support/fits.ts";
import { newRequestId, startService } from "../support/service.ts";
import { runProgram, startProgram, exitCodeOf } from "../support/program.ts";

t.test("a released batch is written as coupon_id,code, and each code belongs to its coupon", async (t) => {
  const service = await startService(t);
  const a = service.as("ak_a");
  const { id, couponIds } = await service.makeBatch(a, "tpl_fixed", 3);
  const { code, stdout, stderr } = await runProgram(service, "codes", [id]);
  t.strictSame([code, stderr], [0, ""]);
  const [header, ...lines] = stdout
    .trimEnd()
    .split("\n")
    .map((line) => line.split(","));
  t.strictSame(header, ["coupon_id", "code"]);
  t.strictSame(
    lines.map(([couponId]) => couponId),
    couponIds,
  );
  for (const [couponId, coupon] of lines) {
    const found = await a.post("/v1/coupons/query", { coupon, merchant: "mch_a" });
    t.equal(found.json.coupon.coupon_id, couponId);
  }
});

t.test("the audit records who exported which batch and when", async (t) => {
  const service = await startService(t);
  const { id } = await service.makeBatch(service.as("ak_a"), "tpl_fixed", 1);
  const exports = () =>
    service.owner.rows<{ login: string; is_recent: boolean }>(
      `select login, recorded_at > now() - interval '1 minute' as is_recent
       from core.audit
       where action = 'export_codes' and target = $1`,
      [id],
    );
  const before = (await exports()).length;
  await runProgram(service, "codes", [id]);
  const after = await exports();
  t.equal(after.length, before + 1);
  fits(t, after.at(-1), { login: /./, is_recent: true });
});

t.test("an unreleased batch is exported only with --unreleased, and a pending one never", async (t) => {
  const service = await startService(t);
  const a = service.as("ak_a");
  const completed = await service.makeBatch(a, "tpl_fixed", 2, { isReleased: false });
  fits(t, await runProgram(service, "codes", [completed.id]), { code: 1, stdout: "", stderr: /--unreleased/ });
  fits(t, await runProgram(service, "codes", [completed.id, "--unreleased"]), {
    code: 0,
    stdout: /^coupon_id,code\n(cpn_\w{26},\w{16}\n){2}$/,
  });
  const created = await a.post("/v1/batches", { request_id: newRequestId(), template: "tpl_fixed", total_count: 2 });
  const pending = created.json.batch.external_id as string;
  fits(t, await runProgram(service, "codes", [pending, "--unreleased"]), {
    code: 1,
    stdout: "",
    stderr: /being minted/,
  });
});

t.test("after --destroy no one can export the codes, and the codes still redeem", async (t) => {
  const service = await startService(t);
  const a = service.as("ak_a");
  const { id, codes } = await service.makeBatch(a, "tpl_fixed", 1);
  for (const args of [
    ["--reason", "printed"],
    ["--destroy", "--reason"],
    ["--destroy", "--unreleased"],
  ])
    fits(t, await runProgram(service, "codes", [id, ...args]), { code: 2, stdout: "", stderr: /\nusage: / });
  fits(t, await runProgram(service, "codes", [id, "--destroy", "--reason", " "]), {
    code: 1,
    stderr: "a patch needs a reason\n",
  });
  const aboutCode = "an argument contains a coupon code: name a coupon by its ID, cpn_…\n";
  for (const args of [[codes[0]!], [id, "--destroy", "--reason", `sheet with ${codes[0]} is lost`]])
    fits(t, await runProgram(service, "codes", args), { code: 1, stdout: "", stderr: aboutCode });
  fits(t, await service.owner.rows("select salt is null as is_destroyed from core.batch"), [{ is_destroyed: false }]);
  const why = ["--destroy", "--reason", "codes are printed"];
  fits(t, await runProgram(service, "codes", [id, ...why]), { code: 0, stdout: "" });
  fits(t, await service.owner.rows("select action, target, reason from core.audit order by audit_id desc limit 1"), [
    { action: "destroy_codes", target: id, reason: "codes are printed" },
  ]);
  fits(t, await runProgram(service, "codes", [id]), { code: 1, stdout: "", stderr: /destroyed/ });
  const [batch] = await service.owner.rows("select salt from core.batch where external_id = $1", [id]);
  fits(t, batch, { salt: null });
  const other = await service.makeBatch(a, "tpl_fixed", 1);
  fits(t, await runProgram(service, "codes", [other.id, "--destroy"]), { code: 0, stdout: "" });
  fits(t, await service.owner.rows("select target, reason from core.audit order by audit_id desc limit 1"), [
    { target: other.id, reason: "no reason given" },
  ]);
  const redeemed = await a.post("/v1/coupons/redeem", {
    request_id: newRequestId(),
    coupon: codes[0],
    merchant: "mch_a",
  });
  t.equal(redeemed.status, 200, redeemed.text);
});

t.test("an unknown batch: one line on standard error and exit code 1; wrong arguments: exit code 2", async (t) => {
  const service = await startService(t);
  t.strictSame(await runProgram(service, "codes", ["bat_none"]), {
    code: 1,
    stdout: "",
    stderr: "no batch bat_none\n",
  });
  for (const args of [[], ["--all"], ["bat_1", "bat_2"]]) {
    fits(t, await runProgram(service, "codes", args), { code: 2, stdout: "", stderr: /^[^\n]+\nusage: / });
  }
});

t.test("a reader that stops early ends the export without a stack", async (t) => {
  const service = await startService(t);
  // More than fits into a pipe.
  const { id } = await service.makeBatch(service.as("ak_a"), "tpl_fixed", 10_000);
  const program = startProgram(service, "codes", id);
  let stderr = "";
  program.stderr.on("data", (chunk) => (stderr += chunk));
  program.stdout.once("data", () => program.stdout.destroy());
  t.equal(await exitCodeOf(program), 1);
  t.equal(stderr, "standard output does not have everything: it was closed\n");
});

t.test("apply reads standard input and prints JSON; for a wrong file it prints the fields", async (t) => {
  const service = await startService(t);
  const tenant = {
    id: "ten_new",
    name: "New",
    variant: "A",
    parties: [{ id: "pty_new", name: "New" }],
    credentials: [{ access_key: "ak_new" }],
  };
  const applied = await runProgram(service, "apply", ["-"], JSON.stringify({ tenants: [tenant] }));
  t.equal(applied.code, 0, applied.stderr);
  fits(t, JSON.parse(applied.stdout), {
    changed: 3,
    generated_secrets: { credentials: [{ access_key: "ak_new", secret: /.{32}/ }] },
  });
  const wrong = { tenants: [{ ...tenant, name: "", variant: "C" }] };
  const refused = await runProgram(service, "apply", ["-"], JSON.stringify(wrong));
  fits(t, refused, { code: 1, stdout: "", stderr: /^tenants\.0\.name: .*\ntenants\.0\.variant: .*\n$/ });
  const secret = "a secret of more than thirty-two characters";
  fits(t, await runProgram(service, "apply", ["-"], `{"secret": "${secret}" x`), {
    code: 1,
    stdout: "",
    stderr: /^-: not JSON at position 5\d[^\n]*\n$/,
  });
  const isRefused = async (document: string | Buffer, stderr: string) =>
    t.strictSame(await runProgram(service, "apply", ["-"], document), { code: 1, stdout: "", stderr });
  await isRefused(`{"tenants": ${secret}}`, "-: not JSON\n");
  await isRefused('{"tenants": [', "-: not JSON at its end\n");
  await isRefused(
    Buffer.from(JSON.stringify({ tenants: [{ ...tenant, name: "Müller" }] }), "latin1"),
    "-: not UTF-8\n",
  );
  fits(t, await runProgram(service, "apply", ["-"], `{"tenants": [], "tenants": ["${secret}"]}`), {
    code: 1,
    stdout: "",
    stderr: "-: has a duplicate key\n",
  });
});
