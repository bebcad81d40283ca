// Runs each test file in a process of its own and writes TAP: node run-files.ts JOBS FILE…
//
// `tap run` does the same with its loaders, for coverage and mocks, which we do not use. They would cost each process
// more time than starting the test.
import t from "tap";

const [jobs, ...files] = process.argv.slice(2);
t.jobs = Number(jobs);
for (const file of files) void t.spawn(process.execPath, [file], { buffered: true, timeout: 900_000 }, file);
