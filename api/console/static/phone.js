// The telephone of the page, by the module that pages of customers get. Whatever others send is set as text.
import { Phone } from "/webrtc/trunkline-phone.js";
import { grants } from "./token.js";

const given = JSON.parse(document.getElementById("phone-data").textContent);
const { texts } = given;
const at = (name) => document.getElementById(`phone-${name}`);
const keys = [...document.querySelectorAll("[data-key]")];
const rings = [];
let call = null;
let far = "";
let since = null;
let beginning = false;

const fill = (text, ...values) => values.reduce((shown, value) => shown.replace("{}", () => value), text);

// For the chosen name and number.
const granted = grants(() => ({ csrf: given.csrf, identity: at("identity").value, from: at("from").value }), texts.over);
const phone = new Phone({ token: granted });

function problem(text) {
  at("problem").textContent = text;
  at("problem").hidden = !text;
}

function reason(error) {
  if (error.errors?.length) return error.errors.map((one) => `${one.field} ${one.message}`).join("; ");
  if (!navigator.mediaDevices) return texts.insecure;
  if (error instanceof DOMException) return fill(texts.microphone, error.message);
  return error.message;
}

function state() {
  if (call === null) return phone.listening ? fill(texts.listening, at("identity").value) : texts.idle;
  if (call.state === "ended") return fill(texts.ended, far, call.reason ?? texts.hung_up);
  if (call.state === "ringing" && call.direction === "incoming") return fill(texts.calls, far);
  return fill(call.held ? texts.held : texts[call.state], far);
}

function show() {
  const up = call !== null && call.state !== "ended";
  const active = up && call.state === "active";
  const incoming = up && call.direction === "incoming" && call.state === "ringing";
  at("state").textContent = state();
  at("answer").hidden = at("refuse").hidden = !incoming;
  at("hangup").hidden = incoming;
  at("hangup").disabled = !up;
  at("begin").disabled = up || beginning;
  for (const button of [at("mute"), at("hold"), ...keys]) button.disabled = !active;
  at("mute").setAttribute("aria-pressed", String(active && call.muted));
  at("hold").setAttribute("aria-pressed", String(active && call.held));
  // The token names both, so they stay while it is used.
  at("identity").disabled = at("from").disabled = up || beginning || phone.listening;
  at("listen").textContent = phone.listening ? at("listen").dataset.on : at("listen").dataset.off;
  const record = at("record");
  record.hidden = !(call?.direction === "outgoing" && call.sid && call.state !== "connecting");
  if (!record.hidden) record.href = `/console/calls/${encodeURIComponent(call.sid)}`;
  if (active) since ??= Date.now();
  clock();
}

function clock() {
  at("clock").hidden = since === null;
  if (since === null || call.state === "ended") return;
  const seconds = Math.floor((Date.now() - since) / 1000);
  at("clock").textContent = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

function follow(made, party) {
  [call, far, since] = [made, party, null];
  problem("");
  call.addEventListener("state", () => {
    if (call.state === "ended" && rings.length) take();
    show();
  });
  show();
}

/** Take the oldest call that still rings. */
function take() {
  const next = rings.splice(0).filter((one) => one.state === "ringing");
  if (next.length === 0) return;
  rings.push(...next.slice(1));
  follow(next[0], next[0].from);
}

at("dial").addEventListener("submit", async (event) => {
  event.preventDefault();
  const to = at("to").value.trim();
  beginning = true;
  problem("");
  show();
  try {
    follow(await phone.call(to), to);
  } catch (error) {
    problem(fill(texts.refused, reason(error)));
  } finally {
    beginning = false;
    show();
    if (rings.length && (call === null || call.state === "ended")) take();
  }
});

phone.addEventListener("incoming", (event) => {
  rings.push(event.call);
  if (beginning || (call !== null && call.state !== "ended")) problem(fill(texts.waiting, event.call.from));
  else take();
});

phone.addEventListener("listening", ({ error }) => {
  problem(error ? fill(texts.not_listening, reason(error)) : "");
  show();
});

for (const name of ["identity", "from"]) at(name).addEventListener("change", granted.forget);
at("listen").addEventListener("click", () => (phone.listening ? phone.close() : phone.listen()));
at("answer").addEventListener("click", () => call.answer().catch((error) => problem(reason(error))));
at("refuse").addEventListener("click", () => call.refuse().catch((error) => problem(reason(error))));
at("hangup").addEventListener("click", () => call.hangup());
at("mute").addEventListener("click", () => {
  call.mute(!call.muted);
  show();
});
at("hold").addEventListener("click", () => call.hold(!call.held).catch((error) => problem(reason(error))).finally(show));
for (const button of keys) button.addEventListener("click", () => call.digit(button.dataset.key));
setInterval(clock, 1000);
show();
