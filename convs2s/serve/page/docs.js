"use strict";
// A plain list of the routes in openapi.json; interactive pages would load scripts from other hosts.

function element(name, text, ...children) {
  const made = document.createElement(name);
  made.textContent = text;
  made.append(...children);
  return made;
}

function resolved(schema, all) {
  if (schema && schema.items && schema.items.$ref) schema = schema.items;
  return schema && schema.$ref ? all.components.schemas[schema.$ref.split("/").pop()] : schema;
}

function kind(schema, all) {
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.anyOf) return schema.anyOf.map((one) => kind(one, all)).join(" or ");
  if (schema.type === "array") return `list of ${schema.items ? kind(schema.items, all) : "values"}`;
  return schema.type || "value";
}

function fields(title, schema, all) {
  if (!schema || !schema.properties) return [];
  const rows = Object.entries(schema.properties).map(([name, one]) => {
    const needed = (schema.required || []).includes(name) ? "" : "optional";
    return element("tr", "", element("th", name), element("td", kind(one, all)), element("td", needed),
      element("td", one.description || ""));
  });
  return [element("h3", title), element("table", "", ...rows)];
}

async function start() {
  const [all, [{ source, target }]] = await Promise.all(
    ["openapi.json", "models"].map(async (path) => (await fetch(path)).json()));
  const sent = JSON.stringify({ q: "Hello.", source, target });
  const curl = `curl ${new URL("translate", location)} \\\n  -H "Content-Type: application/json" -d '${sent}'`;
  document.getElementById("routes").append(element("pre", curl));
  for (const [path, methods] of Object.entries(all.paths)) {
    for (const [method, route] of Object.entries(methods)) {
      const body = route.requestBody && route.requestBody.content["application/json"].schema;
      const done = (route.responses["200"].content || {})["application/json"];
      document.getElementById("routes").append(element("section", "",
        element("h2", `${method.toUpperCase()} ${path}`), element("p", route.description || ""),
        ...fields("Request", body, all), ...fields("Answer", resolved(done && done.schema, all), all)));
    }
  }
}

start();
