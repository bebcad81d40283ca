// npm run webhooks: two tenants, each with two subscribers of the same names.
import t from "tap";
import { chooseCommand } from "../../src/common/command.ts";
import { webhooks } from "../../src/commands/webhooks.ts";
import { startReceiver, status } from "../support/receiver.ts";
import { startDeliverer, subscribe, tenant } from "../support/subscribers.ts";

t.test("status, log and parked show what was asked for: one party of one tenant", async (t) => {
  const receiver = await startReceiver(t, status(500));
  const fixture = await subscribe(t, [receiver.url, receiver.url]);
  const webhook = { url: receiver.url };
  const parties = ["pty_s1", "pty_s2"].map((id) => ({ id, name: id, webhook }));
  await fixture.service.apply({ tenants: [{ id: "ten_other", name: "O", variant: "B", parties }] });
  const deliverer = startDeliverer(fixture, fixture.worker);
  await fixture.happen(["pty_s1", "pty_s2"], 1);
  await fixture.service.owner.rows("update core.delivery set attempt_count = 9");
  for (const party of ["pty_s1", "pty_s2"])
    await fixture.service.admin.rows("select admin.test_webhook('ten_other', $1, 'coupon.redeemed')", [party]);
  await deliverer.drain();
  const events = await fixture.service.owner.rows<{ name: string; event: string }>(
    `select tenant || ' ' || party as name, coalesce(event, test_event) as event from report.delivery_attempt`,
  );
  t.equal(new Set(events.map(({ name }) => name)).size, 4, "each has one attempt");
  const shown = async (...words: string[]) => {
    const { command, args } = chooseCommand(webhooks, [...words, "--json"]);
    const output = await command.read(args)({ database: fixture.service.admin, keys: fixture.service.keys });
    return JSON.parse(output) as Record<string, string>[];
  };
  for (const { name, event } of events) {
    const words = name.split(" ");
    t.strictSame(
      (await shown("log", ...words)).map((row) => row["event"]),
      [event],
      `log ${name}`,
    );
    t.strictSame(
      (await shown("status", ...words)).map((row) => `${row["tenant"]} ${row["party"]}`),
      [name],
      `status ${name}`,
    );
    t.strictSame(
      (await shown("parked", ...words)).map((row) => row["event"]),
      words[0] === tenant ? [event] : [],
      `parked ${name}`,
    );
  }
});
