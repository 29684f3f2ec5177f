// The request of the API follows the choices.
const form = document.getElementById("first");

const quoted = (text) => `'${text.replaceAll("'", `'"'"'`)}'`;

function show() {
  const fields = JSON.parse(form.dataset.fields);
  const chosen = new FormData(form);
  const own = form.querySelector("#f-stream_url");
  own.closest(".field").hidden = chosen.get("does") !== "stream";
  own.required = chosen.get("does") === "stream";
  const body = { from: form.dataset.from, to: chosen.get("to"), ...fields[chosen.get("does")] };
  if (chosen.get("does") === "stream" && own.value) body.stream_url = own.value;
  form.querySelector("code").textContent = [
    `curl -sS -X POST ${form.dataset.url}`, "-H \"Authorization: Bearer $KEY\"",
    "-H 'Content-Type: application/json'", `-d ${quoted(JSON.stringify(body))}`,
  ].join(" \\\n  ");
}

if (form) {
  form.addEventListener("input", show);
  show();
}
