// HTML as text. h3 escapes what is put into a template; markup inside markup stays as it is.
import { html, raw } from "h3";

export type Markup = ReturnType<typeof raw>;
type Value = Markup | string | number | boolean | null | undefined | readonly Value[];

const join = (value: Value): Markup | string =>
  Array.isArray(value) ? raw(value.map((each) => markup`${each}`.value).join("")) : ((value ?? "") as Markup | string);

/** `markup\`<b>${text}</b>\``: texts are escaped, arrays are joined, null is nothing. */
export function markup(strings: TemplateStringsArray, ...values: Value[]): Markup {
  return raw(html(strings, ...values.map(join)).body as string);
}
