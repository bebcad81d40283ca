// Two serve behind one port, as docs/docker.md shows, on a real engine. Skipped where none runs.
import { appendFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import t from "tap";
import { sendPlain } from "../support/client.ts";
import { findMissing, openDeployment, readSection } from "../support/docker.ts";
import { waitUntil } from "../support/wait-until.ts";

const ask = async (url: string): Promise<number> =>
  (await sendPlain(url, "GET", "/readyz").catch(() => ({ status: 0 }))).status;

t.test(
  "two serve behind one port: an upgrade leaves no gap",
  { skip: findMissing("postgres:18", "node:24-slim", "haproxy:3.2"), timeout: 900_000 },
  async (t) => {
    const deployment = await openDeployment(t);
    const override = readSection("Several serve behind one port", "yaml")[0]!;
    writeFileSync(path.join(deployment.folder, "docker-compose.override.yml"), override);
    await deployment.runOk(readSection("Start", "bash")[0]!);
    await waitUntil("the proxy", async () => (await ask(deployment.url)) === 200);
    const before = (await deployment.list()).filter(({ service }) => service === "serve");
    t.equal(before.length, 2);

    appendFileSync(path.join(deployment.folder, "src/serve.ts"), "// The next version.\n");
    const statuses: number[] = [];
    let isOver = false;
    const asking = (async () => {
      for (; !isOver; await sleep(10)) {
        statuses.push(await ask(deployment.url));
      }
    })();
    await deployment.runOk(readSection("Several serve behind one port", "bash")[0]!);
    isOver = true;
    await asking;
    t.strictSame([...new Set(statuses)], [200]);
    t.ok(statuses.length > 100);
    const after = (await deployment.list()).filter(({ service }) => service === "serve");
    t.equal(after.length, 2);
    for (const { id } of before) t.notOk(after.some((container) => container.id === id));
  },
);
