// Each operation needs a route, a function and a case in run_operations. Without the last two, calls of it get a 500.
import { type Breach, type SourceFile, lineAt } from "./source-file.ts";

const dispatcher = "db/code/rules/request/run_operations.sql";

/** Every route has a function with the name of its operation, and run_operations calls it. */
export function checkOperations(routes: SourceFile[], code: SourceFile[]): Breach[] {
  const dispatch = code.find((file) => file.path === dispatcher)?.text ?? "";
  return routes.flatMap((file) =>
    [...file.text.matchAll(/^ {2}operation: "(\w+)",$/gm)].flatMap(({ 1: name, index }) => {
      const wanted = `db/code/api/${name}.sql`;
      const breach = (message: string): Breach => ({ path: file.path, line: lineAt(file.text, index), message });
      return [
        ...(code.some((one) => one.path === wanted) ? [] : [breach(`${name} has no function: add ${wanted}`)]),
        ...(dispatch.includes(`when '${name}' then`) ? [] : [breach(`${name} has no case in ${dispatcher}`)]),
      ];
    }),
  );
}
