// Every block in the documents that the test does not run, with its reason. A new exception needs a line here.
export const notRun: Record<string, readonly string[]> = {
  "README.md": ["the test has installed and started the service"],
  "docs/operate.md": ["changes the global folder of npm", "changes the running shell", "the key of the test is in use"],
  "docs/docker.md": Array(8).fill("needs Docker"),
  "docs/database.md": ["needs psql"],
  "docs/contributing.md": ["takes minutes", "part of an example"],
  "CONTRIBUTING.md": ["takes minutes"],
};
