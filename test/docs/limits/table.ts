// Every documented limit. `node test/docs/limits/table.ts` prints the table of docs/limits.md.
import { renderTable } from "./limit.ts";
import { operationLimits } from "./operations.ts";
import { requestLimits } from "./requests.ts";

export const limits = [...requestLimits, ...operationLimits];

if (import.meta.filename === process.argv[1]) console.log(renderTable(limits));
