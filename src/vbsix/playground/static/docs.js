// The API's documentation, out of its own description.

import { $, ask, h } from "./dom.js";

const description = await ask("/openapi.json");
const { schemas } = description.components;
const docs = $("docs");
docs.prepend(h("p", {}, marked(description.info.description)));

for (const [path, methods] of Object.entries(description.paths)) {
  for (const [method, operation] of Object.entries(methods)) {
    const body = operation.requestBody?.content["application/json"].schema;
    const answer = operation.responses[200].content["application/json"].schema;
    const refusals = Object.entries(operation.responses).filter(([status]) => status !== "200");
    docs.append(
      h(
        "article",
        {},
        h("h2", {}, h("code", {}, `${method.toUpperCase()} ${path}`)),
        h("p", {}, marked(operation.description)),
        fields("Parameter", (operation.parameters ?? []).map((one) => [one.name, one.schema, one.required, one.description])),
        body && fields("Takes", properties(body)),
        fields("Gives", properties(answer)),
        h("h3", {}, "Refuses"),
        h("ul", {}, refusals.map(([status, { description }]) => h("li", {}, h("code", {}, status), " ", marked(description)))),
        body && h("pre", { tabIndex: 0 }, `curl ${location.origin}${path} -H 'Content-Type: application/json' -d '${JSON.stringify(example(body))}'`)
      )
    );
  }
}

/** A text with what stands between backticks as code. */
function marked(text) {
  return text.split("`").map((part, place) => (place % 2 ? h("code", {}, part) : part));
}

function resolve(schema) {
  return schema.$ref ? schemas[schema.$ref.split("/").at(-1)] : schema;
}

function properties(schema) {
  const { properties = {}, required = [] } = resolve(schema);
  return Object.entries(properties).map(([name, field]) => [name, field, required.includes(name), field.description]);
}

function fields(title, rows) {
  if (!rows.length) return null;
  const heads = [title, "type", "meaning"].map((text) => h("th", { scope: "col" }, text));
  const lines = rows.map(([name, schema, required, meaning]) =>
    h(
      "tr",
      {},
      h("td", {}, h("code", {}, name), required ? "" : " (may be left out)"),
      h("td", {}, type(schema)),
      h("td", {}, meaning ?? "")
    )
  );
  return h("table", {}, h("thead", {}, h("tr", {}, heads)), h("tbody", {}, lines));
}

/** A schema in words: "list of 1 to 5 text of 1 to 300". */
function type(schema) {
  const { type: kind, items, enum: choices, anyOf, additionalProperties, properties } = resolve(schema);
  if (choices) return `one of ${choices.join(", ")}`;
  if (anyOf) return anyOf.map(type).join(" or ");
  if (kind === "array") return `list${limits(schema.minItems, schema.maxItems)} of ${type(items)}`;
  if (properties) return `{${Object.keys(properties).join(", ")}}`;
  if (kind === "object") return additionalProperties === true ? "object" : `object of ${type(additionalProperties ?? {})}`;
  return `${{ string: "text", null: "nothing" }[kind] ?? kind}${limits(schema.minLength, schema.maxLength)}`;
}

function limits(least, most) {
  return most ? ` (${least ?? 0} to ${most})` : "";
}

function example(schema) {
  const { properties, items, examples, default: usual, enum: choices, type: kind } = resolve(schema);
  if (usual !== undefined) return usual;
  if (examples) return examples[0];
  if (choices) return choices[0];
  if (properties) return Object.fromEntries(Object.entries(properties).map(([name, field]) => [name, example(field)]));
  return kind === "array" ? [example(items)] : "tangrams";
}
