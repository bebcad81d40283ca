// What `npx ley` reads in this folder. Our part is TypeScript, so it needs a Node that runs TypeScript.
export default async () => {
  if (Number(process.versions.node.split(".")[0]) < 24) {
    console.error(
      `Node 24 or newer is needed, this is ${process.version}: ` +
        "start ley with npx, which brings its own Node on Linux x64, or use `npm run migrate -- --status`.",
    );
    process.exit(1);
  }
  const { configureLey } = await import("./src/commands/ley.ts");
  return configureLey(process.argv.slice(2));
};
