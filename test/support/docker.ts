// The deployment of docker-compose.yml on a real engine: a project of its own, made from a copy of the checkout.
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { appendFileSync, readFileSync, rmSync } from "node:fs";
import path from "node:path";
import type { Test } from "tap";
import { change, copyCheckout, root } from "./copy.ts";
import { findFreePort } from "./listen.ts";
import { waitFor, waitUntil } from "./wait-until.ts";

export type Ran = { code: number | null; stdout: string; stderr: string };

const oldestCompose = [2, 24];
const blockMs = 300_000;

/** Returns why the tests cannot run here, or false. */
export function findMissing(...images: string[]): string | false {
  const docker = (...args: string[]) => spawnSync("docker", args, { encoding: "utf8", timeout: 120_000 });
  if (docker("info").status !== 0) return "no Docker engine runs";
  const [major = 0, minor = 0] = docker("compose", "version", "--short").stdout.replace("v", "").split(".").map(Number);
  if (major < oldestCompose[0]! || (major === oldestCompose[0] && minor < oldestCompose[1]!))
    return `needs Docker Compose ${oldestCompose.join(".")}`;
  const isHere = (image: string) =>
    docker("image", "inspect", image).status === 0 || docker("pull", image).status === 0;
  const missing = images.filter((image) => !isHere(image));
  return missing.length > 0 && `cannot get the image ${missing.join(", ")}`;
}

export type Deployment = Awaited<ReturnType<typeof openDeployment>>;

/** Nothing is started. When the test ends, everything of the deployment is removed. */
export async function openDeployment(t: Test) {
  const folder = copyCheckout();
  const image = path.basename(folder).toLowerCase();
  // An image of the developer keeps its name.
  change(folder, [{ file: "docker-compose.yml", find: "  image: coupon-service\n", replace: `  image: ${image}\n` }]);
  const port = await findFreePort();
  // Nothing else of the shell, because .env must do.
  const kept = ["PATH", "HOME", "DOCKER_HOST", "DOCKER_CONFIG", "DOCKER_CONTEXT"];
  const env = { ...Object.fromEntries(kept.map((name) => [name, process.env[name]])), PORT: String(port) };
  // A process group, so that kill reaches docker and its plugin.
  const start = (script: string): ChildProcess =>
    spawn("bash", ["--noprofile", "--norc", "-e", "-o", "pipefail", "-c", script], {
      cwd: folder,
      env,
      detached: true,
    });
  const run = async (script: string, input = ""): Promise<Ran> => {
    const bash = start(script);
    const timer = setTimeout(() => killGroup(bash), blockMs);
    const [stdout, stderr] = [collect(bash.stdout!), collect(bash.stderr!)];
    bash.stdin!.on("error", () => {}).end(input);
    const ended = new Promise<number | null>((resolve) => bash.once("close", resolve));
    // Longer than the timer that kills it.
    const code = await waitFor(`the end of ${script}`, ended, { withinMs: 2 * blockMs });
    clearTimeout(timer);
    return { code, stdout: stdout.join(""), stderr: stderr.join("") };
  };
  const runOk = async (script: string, input = ""): Promise<string> => {
    const { code, stdout, stderr } = await run(script, input);
    if (code !== 0) throw new Error(`${script}\nended with ${code}: ${stdout}${stderr}`);
    return stdout;
  };
  t.teardown(async () => {
    await run(`docker compose --profile tool down --volumes --timeout 5; docker image rm --force ${image}`);
    rmSync(folder, { recursive: true, force: true });
  });

  return {
    folder,
    url: `http://127.0.0.1:${port}`,
    /** Sets a value in .env. */
    setValue(name: string, value: string): void {
      appendFileSync(path.join(folder, ".env"), `${name}='${value.replaceAll("'", "\\'")}'\n`);
    },
    start,
    run,
    runOk,
    /** The containers, such as "serve running healthy" or "migrate exited 0", with their ids. */
    async list(): Promise<{ id: string; service: string; state: string }[]> {
      const format = "{{.ID}} {{.Service}} {{.State}} {{.Health}} {{.ExitCode}}";
      const lines = (await runOk(`docker compose ps --all --format '${format}'`)).trim().split("\n");
      return lines.map((line) => {
        const [id = "", service = "", state, health, code] = line.split(" ");
        return { id, service, state: state === "exited" ? `exited ${code}` : `${state} ${health}` };
      });
    },
    async untilHealthy(...services: string[]): Promise<void> {
      const areHealthy = async () => {
        const all = await this.list();
        return services.every((name) => {
          const states = all.filter(({ service }) => service === name).map(({ state }) => state);
          return states.length > 0 && states.every((state) => state === "running healthy");
        });
      };
      await waitUntil(`${services.join(", ")} to be healthy`, areHealthy, { everyMs: 500 });
    },
  };
}

/** Without a signal that Compose could answer by stopping the containers. */
export function killGroup({ pid }: ChildProcess): void {
  process.kill(-pid!, "SIGKILL");
}

/** The pieces that a stream has given so far. */
export function collect(stream: NodeJS.ReadableStream): string[] {
  const pieces: string[] = [];
  stream.on("data", (piece: Buffer) => pieces.push(piece.toString()));
  return pieces;
}

/** The blocks of a section of docs/docker.md, by language. */
export function readSection(title: string, language: string): string[] {
  const text = readFileSync(path.join(root, "docs/docker.md"), "utf8");
  const section = text.split(/^## /m).find((part) => part.startsWith(`${title}\n`));
  if (section === undefined) throw new Error(`docs/docker.md has no section ${title}`);
  const blocks = [...section.matchAll(/^```(\w+)\n([^]*?)^```$/gm)];
  return blocks.filter(([, name]) => name === language).map(([, , body = ""]) => body);
}
