// A program that dies of an uncaught error of the driver. That is the most dangerous kind, because it carries the
// values of a statement and of a row. Arguments: exception or rejection, and the value.
import { connect } from "../../src/database/connect.ts";
import { readConfig } from "../../src/common/config.ts";
import { runProgram } from "../../src/common/program.ts";

await runProgram(async () => {
  const [how, value] = process.argv.slice(2);
  const database = connect(readConfig().address!, { name: "coupon test", max: 1 });
  const insert = () => database.rows("insert into seen values ($1)", [value]);
  await database.rows("create temporary table seen (value text primary key)");
  await insert();
  if (how === "rejection") void insert();
  else
    insert().catch((error: unknown) =>
      setImmediate(() => {
        throw error;
      }),
    );
});
