// `npx ley -C db` reads this one.
export { default } from "../ley.config.js";
