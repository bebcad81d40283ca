// The database server of a test run: the one of TEST_DATABASE_URL, otherwise a container if Docker runs, otherwise the
// embedded one.
import { spawnSync } from "node:child_process";
import { type Address, parseUrl } from "../../src/config/database-address.ts";
import { startScratch } from "./temporary-server.ts";

export interface TestServer {
  name: string;
  /** Names a database from which others can be created. */
  address: Address;
  stop(): Promise<void>;
}

export async function startServer(): Promise<TestServer> {
  const url = process.env["TEST_DATABASE_URL"];
  if (url) return { name: "TEST_DATABASE_URL", address: readAddress("TEST_DATABASE_URL", url), stop: async () => {} };
  if (isDockerRunning()) {
    try {
      return await startContainer();
    } catch (error) {
      console.log(`no container (${(error as Error).message.split("\n")[0]}): using the embedded server`);
    }
  }
  const { address, stop } = await startScratch();
  return { name: "embedded PostgreSQL 18", address, stop };
}

const isDockerRunning = (): boolean => spawnSync("docker", ["info"], { stdio: "ignore", timeout: 5_000 }).status === 0;

async function startContainer(): Promise<TestServer> {
  const { GenericContainer, Wait } = await import("testcontainers");
  const container = await new GenericContainer("postgres:18")
    .withEnvironment({ POSTGRES_PASSWORD: "test", POSTGRES_DB: "coupon" })
    .withCommand(["postgres", "-c", "fsync=off", "-c", "max_connections=300"])
    .withExposedPorts(5432)
    // The image starts the server twice. The first one prepares the data and is unreachable from outside.
    .withWaitStrategy(Wait.forLogMessage(/ready to accept connections/, 2))
    .withStartupTimeout(120_000)
    .start();
  return {
    name: "postgres:18 in a container",
    address: {
      host: container.getHost(),
      port: container.getMappedPort(5432),
      user: "postgres",
      password: "test",
      database: "coupon",
    },
    stop: async () => {
      await container.stop();
    },
  };
}

/** The address in a setting of the tests. */
export function readAddress(setting: string, url: string): Address {
  const address = parseUrl(url);
  if (address === null) throw new Error(`${setting} must be a URL such as postgres://user:password@host:5432/database`);
  return address;
}
