// `npm run migrate`: brings a database to this version of the source. See src/migration/migrate.ts for how.
import { readConfig } from "../common/config.ts";
import { isProgram, runProgram } from "../common/program.ts";
import { findAddress } from "../embedded/find-address.ts";
import { migrate } from "../migration/migrate.ts";

if (isProgram(import.meta)) {
  await runProgram(async () => {
    await migrate(findAddress(readConfig()), console.log);
  });
}
