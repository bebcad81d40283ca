// A program that runs an embedded server as `npm start` does, for tests that kill it.
import { startEmbedded } from "../../src/embedded/server.ts";
import { onStop, runProgram } from "../../src/common/program.ts";

await runProgram(async () => {
  const { address, folder, stop } = await startEmbedded(process.argv[2]!);
  onStop(stop);
  setInterval(() => {}, 60_000);
  console.log(JSON.stringify({ address, folder }));
});
