// The request of the API follows the choices, and a call to this browser is answered here.
import { Phone } from "/webrtc/trunkline-phone.js";
import { follow, listenTo } from "./call.js";
import { grants } from "./token.js";

const LISTENING_MS = 10_000;

const form = document.getElementById("first");
const texts = form && JSON.parse(form.dataset.script);
const at = (name) => document.getElementById(`first-${name}`);
const quoted = (text) => `'${text.replaceAll("'", `'"'"'`)}'`;
let phone = null;
let call = null;
let stop = () => {};

const toBrowser = () => new FormData(form).get("to")?.startsWith("browser:");

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

function tell(text, wrong = false) {
  at("state").hidden = !text;
  at("state").textContent = text;
  at("state").classList.toggle("bad", wrong);
  at("hangup").hidden = !(call && call.state !== "ended");
}

function answer(incoming) {
  if (call && call.state !== "ended") { incoming.refuse().catch(() => {}); return; }
  call = incoming;
  call.addEventListener("state", () => {
    tell(call.state === "ended" ? `${texts.ended} ${call.reason ?? ""}` : texts.talking);
    form.querySelector("button").disabled = call.state !== "ended";
  });
  call.answer().catch((error) => tell(navigator.mediaDevices ? error.message : texts.insecure, true));
}

/** Let this browser be called, until the page is left. */
async function ready() {
  if (phone?.listening) return;
  const fields = () => ({ csrf: form.elements.csrf.value, identity: form.dataset.identity, from: form.dataset.from });
  if (!phone) {
    phone = new Phone({ token: grants(fields, texts.over) });
    phone.addEventListener("incoming", (event) => answer(event.call));
  }
  await new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(texts.unheard)), LISTENING_MS);
    phone.addEventListener("listening", ({ error }) => {
      clearTimeout(timer);
      if (phone.listening) resolve();
      else if (error) { phone.close(); reject(error); }
    });
    phone.listen();
  });
}

/** Place the call as the form does, and show its axis in this page, which the call needs. */
async function place() {
  const body = new URLSearchParams(new FormData(form));
  await ready();
  const response = await fetch(form.action, { method: "POST", body });
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const problem = page.querySelector("[role=alert]");
  if (problem) throw new Error(problem.textContent.trim());
  const axis = page.querySelector(".axis");
  if (!axis) throw new Error(texts.over);
  document.querySelector(".axis")?.remove();
  form.after(axis);
  const link = document.createElement("a");
  link.href = `/console/calls/${axis.dataset.call}`;
  link.textContent = texts.open;
  const followed = follow(axis);
  at("page").replaceChildren(link);
  stop();
  stop = listenTo(axis, followed);
}

if (form) {
  for (const label of form.querySelectorAll("[data-browser]")) label.hidden = false;
  form.addEventListener("input", show);
  form.addEventListener("submit", (event) => {
    if (!toBrowser()) return;
    event.preventDefault();
    const button = form.querySelector("button");
    button.disabled = true;
    tell(texts.calling);
    place().catch((error) => { button.disabled = false; tell(error.message, true); });
  });
  at("hangup").addEventListener("click", () => call?.hangup());
  show();
}
