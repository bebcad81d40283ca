// Connection URLs: what we read, what we write, and that both drivers read what we write as we mean it.
import { createServer, type AddressInfo } from "node:net";
import pg from "pg";
import t from "tap";
import { ConfigError, readConfig } from "../../src/common/config.ts";
import { type Address, formatUrl, parseUrl } from "../../src/common/database-address.ts";
import { connect, formatRoleUrl } from "../../src/database/connect.ts";
import { fits } from "../support/fits.ts";
import { waitUntil } from "../support/wait-until.ts";

const tcp = { host: "db.example.com", port: 6432, user: "coupon", password: "pw", database: "coupon" };
const socket = { host: "/run/postgresql", port: 5433, user: "coupon", database: "coupon" };

t.test("a URL names a host or the folder of a unix socket", async (t) => {
  t.strictSame(parseUrl("postgres://coupon:pw@db.example.com:6432/coupon"), tcp);
  t.strictSame(parseUrl("postgresql://coupon:pw@db.example.com:6432/coupon"), tcp);
  t.strictSame(parseUrl("postgres://coupon@/coupon?host=/run/postgresql&port=5433"), socket);
  t.strictSame(parseUrl("postgres://coupon@%2Frun%2Fpostgresql:5433/coupon"), socket);
  t.strictSame(parseUrl("postgres:///coupon?host=%2Frun"), { host: "/run", port: 5432, database: "coupon" });
  t.strictSame(parseUrl("postgres://"), { host: "localhost", port: 5432 });
  t.strictSame(parseUrl("postgres://[::1]:6432/coupon"), { host: "::1", port: 6432, database: "coupon" });
  for (const port of [1, 65_535])
    t.strictSame(parseUrl(`postgres://db:${port}/coupon`), { host: "db", port, database: "coupon" });
  t.strictSame(parseUrl("postgres://db/coupon?sslmode=verify-full"), {
    host: "db",
    port: 5432,
    database: "coupon",
    parameters: { sslmode: "verify-full" },
  });
});

t.test("a password may hold any character if it is encoded, and / # @ : as they are", async (t) => {
  const passwords = ["a/b", "a#b", "a@b", "a:b", "a+b=", "/", "#"];
  for (const password of passwords) {
    t.strictSame(parseUrl(`postgres://coupon:${password}@db.example.com:6432/coupon`), { ...tcp, password });
  }
  for (const password of [...passwords, "a?b", "a%b", "ü %2F"]) {
    const text = encodeURIComponent(password);
    t.strictSame(parseUrl(`postgres://coupon:${text}@db.example.com:6432/coupon`), { ...tcp, password });
  }
});

t.test("PGPASSWORD is the password of a URL without one, whatever it holds", async (t) => {
  const url = "postgres://coupon@db.example.com:6432/coupon";
  for (const password of ["a/b#c?d%e@f:g", "50%41", "'\\$x\"", " ü "]) {
    t.strictSame(readConfig({ DATABASE_URL: url, PGPASSWORD: password }).address, { ...tcp, password });
    t.strictSame(readConfig({ DATABASE_URL: formatUrl(tcp), PGPASSWORD: password }).address, tcp);
  }
  t.strictSame(readConfig({ DATABASE_URL: url, PGPASSWORD: "" }).address, parseUrl(url));
  t.equal(readConfig({ PGPASSWORD: "pw" }).address, null);
});

t.test("other texts are refused, and the message of the setting does not repeat them", async (t) => {
  const bad = [
    "coupon",
    "mysql://db/coupon",
    "postgres:db/coupon",
    "postgres://db:port/coupon",
    "postgres://db:65536/coupon",
    "postgres://db:0/coupon",
    "postgres://coupon:50%@db/coupon",
  ];
  for (const text of bad) {
    t.equal(parseUrl(text), null, text);
    t.throws(() => readConfig({ DATABASE_URL: text }), ConfigError);
    t.throws(() => readConfig({ DATABASE_URL: text }), { message: /^DATABASE_URL must be (?!.*secret)/ });
  }
  t.equal(readConfig({ DATABASE_URL: " " }).address, null);
  t.strictSame(readConfig({ DATABASE_URL: formatUrl(tcp) }).address, tcp);
});

t.test("what is written is read back, by us and by graphile-worker's driver", async (t) => {
  const addresses: Address[] = [
    tcp,
    socket,
    { host: "db", port: 5432 },
    { ...tcp, host: "::1" },
    { ...tcp, user: "a/b@c:d", password: "p/q#r?s@t:u%v w+ü" },
    { ...socket, password: "/#?" },
    { ...tcp, parameters: { application_name: "a b&c=d" } },
  ];
  for (const address of addresses) {
    t.strictSame(parseUrl(formatUrl(address)), address);
    if (address.user === undefined) continue;
    const theirs = new pg.Client(formatRoleUrl(address, "coupon_worker")) as unknown as {
      connectionParameters: Record<string, unknown>;
    };
    const { parameters: _, ...expected } = address;
    fits(t, theirs.connectionParameters, {
      ...expected,
      application_name: "coupon_worker",
      options: /^-c DateStyle=ISO,\\ MDY .* -c role=coupon_worker$/,
    });
  }
});

t.test("both drivers connect to an IPv6 address", async (t) => {
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    socket.destroy();
  });
  const isListening = await new Promise<boolean>((resolve) => {
    server.once("error", () => resolve(false)).listen(0, "::1", () => resolve(true));
  });
  if (!isListening) return void t.pass("skipped: this machine has no IPv6");
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;
  const address = readConfig({ DATABASE_URL: `postgres://coupon@[::1]:${port}/coupon` }).address!;
  await t.rejects(new pg.Client(formatRoleUrl(address, "coupon_worker")).connect());
  t.equal(connections, 1);
  const database = connect(address, { name: "coupon test", max: 1 });
  const asked = database.rows("select 1").catch(() => {});
  await waitUntil("a connection of the other driver", () => connections > 1, { withinMs: 20_000 });
  await database.end();
  await asked;
});
