// Benches of a router: environments behind one, each a cell, and what a redemption through it costs.
import { connect } from "../../../src/database/connect.ts";
import { startLoggedProgram } from "../../support/logged-program.ts";
import { environmentOf } from "../../support/program.ts";
import { addCells } from "../../support/route.ts";
import { findRouterBinaries, howToInstall, startRouterServer } from "../../support/router.ts";
import type { Environment, Server } from "./environment.ts";
import { costsSince, postgresCpu, readCosts } from "./measure.ts";

/** CPU in seconds: of the servers of the cells, of that of the router, and of the `serve` that answers. */
export type Spent = { cells: number; router: number; serve: number };
export type Router = {
  /** The same environments, with the `serve` in front of the router. */
  routed: Environment[];
  /** Runs the work and resolves when its events are in the feeds. */
  measure<T>(environments: Environment[], work: () => Promise<T>): Promise<T & { spent: Spent }>;
  end(): Promise<void>;
};

/** The environments are its cells, numbered from 1 on. */
export async function openRouter({ folder }: Pick<Server, "folder">, environments: Environment[]): Promise<Router> {
  const binaries = findRouterBinaries();
  if (binaries === undefined) throw new Error(howToInstall);
  const { address, stop } = await startRouterServer(binaries);
  await addCells(
    address,
    environments.map((each) => each.address),
  );
  const { masterKeyText } = environments[0]!;
  const serve = await startLoggedProgram("serve", folder, environmentOf({ address, masterKeyText }));
  const session = connect(address, { name: "coupon bench", max: 1 });
  const [backend] = await session.rows<{ pid: number }>("select pg_backend_pid() as pid");

  async function readAll(of: Environment[]) {
    const costs = await Promise.all(of.map(readCosts));
    return { costs, router: postgresCpu(backend!.pid) };
  }

  return {
    routed: environments.map((each) => ({
      ...each,
      url: serve.url,
      pids: () => ({ ...each.pids(), serve: serve.pid }),
    })),
    async measure(of, work) {
      const before = await readAll(of);
      const done = await work();
      for (const { untilCaughtUp } of of) await untilCaughtUp();
      const after = await readAll(of);
      const costs = after.costs.map((each, index) => costsSince(before.costs[index]!, each));
      const cells = costs.reduce((sum, { postgres }) => sum + postgres, 0);
      // There is one `serve` for all of them.
      return { ...done, spent: { cells, router: after.router - before.router, serve: costs[0]!.serve } };
    },
    async end() {
      await serve.stop();
      await session.end();
      await stop();
    },
  };
}
