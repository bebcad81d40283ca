// Runs in the browser, on /docs.
const variant = new URLSearchParams(location.search).get("variant") === "b" ? "b" : "a";
document.querySelector(`[data-variant="${variant}"]`).setAttribute("aria-current", "page");

const isErrorLink = location.hash.startsWith("#error");
if (isErrorLink) followTarget(document.getElementById(location.hash.slice(1)));

globalThis.SwaggerUIBundle({
  url: `openapi/${variant}.json`,
  dom_id: "#reference",
  // Swagger UI would take the name of an error code for a link of its own.
  deepLinking: !isErrorLink,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  // Calls must be signed, which this page cannot do.
  supportedSubmitMethods: [],
  validatorUrl: null,
});

// The list of error codes moves down while the reference is drawn above it. Its target stays in view until the reader
// moves.
function followTarget(target) {
  const observer = new ResizeObserver(() => target?.scrollIntoView());
  observer.observe(document.getElementById("reference"));
  for (const move of ["wheel", "touchstart", "keydown", "pointerdown"])
    addEventListener(move, () => observer.disconnect(), { once: true });
}
