// TLS to the database: both drivers do what sslmode means. A proxy speaks TLS in front of the server.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { TLSSocket } from "node:tls";
import pg from "pg";
import t, { type Test } from "tap";
import { ConfigError, readConfig } from "../../src/common/config.ts";
import { type Address, formatUrl, isSocketFolder } from "../../src/common/database-address.ts";
import { formatRoleUrl, openSession } from "../../src/database/connect.ts";
import { readTls } from "../../src/database/tls.ts";
import { createDatabase } from "../support/database.ts";
import { listenOnLoopback } from "../support/listen.ts";

type Certificate = { key: Buffer; cert: Buffer; file: string };

// Signed by itself, so it is its own authority. Null without openssl.
function makeCertificate(folder: string, name: string): Certificate | null {
  const [key, file] = [`${folder}/key.pem`, `${folder}/ca.pem`];
  const made = spawnSync("openssl", [
    ..."req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=database".split(" "),
    ...`-addext subjectAltName=${name} -keyout ${key} -out ${file}`.split(" "),
  ]);
  return made.status === 0 ? { key: readFileSync(key), cert: readFileSync(file), file } : null;
}

// Answers the request for TLS with S, and carries what comes then. Refuses clients that do not ask.
async function startTlsProxy(t: Test, { host, port }: Address, { key, cert }: Certificate): Promise<number> {
  const far = () => (isSocketFolder(host) ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host));
  const server = createServer((near: Socket) => {
    near.on("error", () => {});
    near.once("data", (request) => {
      if (request.length !== 8 || request.readInt32BE(4) !== 80_877_103) return void near.destroy();
      near.write("S");
      const secure = new TLSSocket(near, { isServer: true, key, cert });
      const behind = far();
      for (const socket of [secure, behind]) socket.on("error", () => [near, behind].forEach((one) => one.destroy()));
      secure.pipe(behind).pipe(secure);
    });
  });
  const listening = await listenOnLoopback(server);
  t.teardown(() => server.close());
  return listening;
}

async function askOurs(address: Address): Promise<unknown> {
  const session = openSession(address, { name: "coupon test" });
  try {
    return (await session.rows<{ answer: number }>("select 42 as answer"))[0]!.answer;
  } finally {
    await session.end();
  }
}

async function askTheirs(address: Address): Promise<unknown> {
  const client = new pg.Client({ connectionString: formatRoleUrl(address, "coupon_worker"), ssl: readTls(address) });
  client.on("error", () => {});
  try {
    await client.connect();
    return (await client.query("select 42 as answer")).rows[0].answer;
  } finally {
    await client.end();
  }
}

t.test("Both drivers encrypt and verify as sslmode says", async (t) => {
  const folder = t.testdir({ named: {}, numbered: {} });
  const named = makeCertificate(`${folder}/named`, "DNS:localhost");
  const numbered = makeCertificate(`${folder}/numbered`, "IP:127.0.0.1");
  const isMade = named !== null && numbered !== null;
  if (!isMade) return void t.pass("not tried", { skip: "no openssl to make a certificate" });
  const { address, drop } = await createDatabase();
  t.teardown(drop);
  const ports = { named: await startTlsProxy(t, address, named), numbered: await startTlsProxy(t, address, numbered) };
  const cases: [host: string, port: number, parameters: Record<string, string>, works: boolean][] = [
    ["localhost", ports.named, { sslmode: "require" }, true],
    ["localhost", ports.named, { sslmode: "verify-ca" }, false],
    ["localhost", ports.named, { sslmode: "verify-full" }, false],
    ["localhost", ports.named, { sslmode: "verify-full", sslrootcert: named.file }, true],
    ["127.0.0.1", ports.named, { sslmode: "verify-full", sslrootcert: named.file }, false],
    ["127.0.0.1", ports.named, { sslmode: "verify-ca", sslrootcert: named.file }, true],
    ["localhost", ports.named, { sslmode: "verify-ca", sslrootcert: numbered.file }, false],
    ["127.0.0.1", ports.numbered, { sslmode: "verify-full", sslrootcert: numbered.file }, true],
  ];
  for (const [host, port, parameters, works] of cases) {
    const url = formatUrl({ ...address, host, port, parameters });
    const there = readConfig({ DATABASE_URL: url }).address!;
    for (const ask of [askOurs, askTheirs]) {
      const title = `${ask.name}: ${host} ${JSON.stringify(parameters)}`;
      t.equal(await ask(there).catch(() => "refused"), works ? 42 : "refused", title);
    }
  }
});

t.test("Parameters for TLS that a driver would read otherwise are refused", async (t) => {
  const folder = t.testdir({ "ca.pem": "-----BEGIN CERTIFICATE-----", "empty.pem": "" });
  const file = `${folder}/ca.pem`;
  const refused: [string, RegExp][] = [
    ["sslmode=prefer", /sslmode must be one of disable, require, verify-ca, verify-full/],
    ["sslmode=allow", /sslmode must be one of/],
    ["sslmode=", /sslmode must be one of/],
    ["ssl=true", /ssl is not supported/],
    ["sslmode=require&sslcert=/c.pem", /sslcert is not supported/],
    ["sslmode=require&sslnegotiation=direct", /sslnegotiation is not supported/],
    [`sslrootcert=${file}`, /sslrootcert needs sslmode=verify-ca or sslmode=verify-full/],
    [`sslmode=require&sslrootcert=${file}`, /sslrootcert needs/],
    ["channel_binding=require", /channel_binding is not supported/],
    [`sslmode=verify-full&sslrootcert=${file}.none`, /the file sslrootcert cannot be read/],
    [`sslmode=verify-ca&sslrootcert=${folder}/empty.pem`, /has no certificate/],
  ];
  for (const [parameters, message] of refused) {
    const read = () => readConfig({ DATABASE_URL: `postgres://coupon:secret@db/coupon?${parameters}` });
    t.throws(read, ConfigError, parameters);
    t.throws(read, { message }, parameters);
  }
  t.throws(() => readConfig({ DATABASE_URL: "postgres://coupon@one,two/coupon" }), { message: /must name one host/ });
  const address = readConfig({ DATABASE_URL: `postgres://db/coupon?sslmode=verify-ca&sslrootcert=${file}` }).address!;
  t.strictSame(address.parameters, { sslmode: "verify-ca", sslrootcert: file });
  t.equal(readTls({ ...address, host: "/run/postgresql" }), false, "a socket has no TLS");
  for (const text of ["postgres://db/coupon", "postgres://db/coupon?sslmode=disable"])
    t.equal(readTls(readConfig({ DATABASE_URL: text }).address!), false, text);
});
