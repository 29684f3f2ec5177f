// The calls that are up. Rows are kept by their call; what a call has is set as text.
import { listen } from "./events.js";
import { showTimes } from "./frame.js";
import { listenIn, stopListening } from "./listen.js";

const given = JSON.parse(document.getElementById("live-data").textContent);
const texts = given.script;
const body = document.getElementById("live-rows");
const rows = new Map();
const levels = new Map();
let calls = new Map();
let total = 0;

const clock = (seconds) => {
  const all = Math.max(0, Math.floor(seconds));
  const [hours, minutes, rest] = [Math.floor(all / 3600), Math.floor(all / 60) % 60, String(all % 60).padStart(2, "0")];
  return hours ? `${hours}:${String(minutes).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`;
};

function make(call) {
  const row = document.getElementById("live-row").content.firstElementChild.cloneNode(true);
  const find = (name) => row.querySelector(`[data-${name}]`);
  const page = `/console/calls/${encodeURIComponent(call.call_sid)}`;
  find("open").href = page;
  row.querySelector("time").dateTime = call.created_at;
  row.querySelector("time").textContent = call.created_at;
  find("direction").classList.add(call.direction);
  find("from").textContent = call.from;
  find("to").textContent = call.to;
  if (find("account")) find("account").textContent = call.account ?? "";
  if (find("hangup")) find("hangup").action = `${page}/hangup`;
  find("listen")?.addEventListener("click", () => hear(call, page, find("listen")));
  return { row, page, callSid: call.call_sid, shown: "", status: find("status"), legs: find("legs"), duration: find("duration") };
}

function heard(text) {
  const notice = document.getElementById("live-heard");
  notice.textContent = text;
  notice.hidden = !text;
}

/** Listen to a call, or stop that; the button says which of both it does. */
async function hear(call, page, button) {
  const press = (pressed) => {
    button.toggleAttribute("data-heard", pressed);
    button.textContent = pressed ? given.labels.stop : given.labels.listen;
  };
  if (button.hasAttribute("data-heard")) { stopListening(); return; }
  try {
    const listening = listenIn(page, given.csrf, given.ice, () => { press(false); heard(texts.over); });
    press(true);
    await listening;
    if (button.hasAttribute("data-heard")) heard(texts.heard.replace("{}", () => call.to));
  } catch (error) {
    heard(texts.unheard.replace("{}", () => error.message));
  }
}

const legText = (leg) => `${leg.party ?? texts.caller}: ${texts.states[leg.state] ?? leg.state}`;

function makeLeg(leg, page) {
  const item = document.getElementById("live-leg").content.firstElementChild.cloneNode(true);
  const find = (name) => item.querySelector(`[data-${name}]`);
  find("state").textContent = legText(leg);
  find("muted").hidden = !leg.muted;
  find("muted").textContent = texts.muted[leg.muted] ?? "";
  const form = find("mute");
  if (form && leg.name) {
    const muted = leg.muted === "says" || leg.muted === "both";
    form.hidden = false;
    form.action = `${page}/mute`;
    form.elements.party.value = leg.name;
    form.elements.mute_status.value = muted ? "unmute" : "mute";
    const button = form.querySelector("button");
    button.textContent = muted ? given.labels.unmute : given.labels.mute;
    button.setAttribute("aria-label", `${button.textContent} ${leg.party ?? texts.caller}`);
  }
  item.dataset.leg = leg.leg;
  find("level").setAttribute("aria-label", `${given.labels.level} ${leg.party ?? texts.caller}`);
  return item;
}

const percent = (value, text) => (value === null ? "" : text.replace("{}", value));

/** Show the levels of a call's legs, as they were told last. */
function showLevels(callSid) {
  const kept = rows.get(callSid);
  for (const [leg, level, received, sent] of levels.get(callSid) ?? []) {
    const item = kept?.legs.querySelector(`[data-leg="${Number(leg)}"]`);
    if (!item) continue;
    const meter = item.querySelector("[data-level]");
    meter.hidden = false;
    meter.value = level;
    const loss = [percent(received, texts.lost_in), percent(sent, texts.lost_out)].filter(Boolean).join(", ");
    item.querySelector("[data-loss]").textContent = loss && `${texts.loss} ${loss}`;
  }
}

function measured(changed) {
  for (const [callSid, legs] of Object.entries(changed)) {
    levels.set(callSid, legs);
    showLevels(callSid);
  }
}

/** Show the legs of a call; those that are as before keep the focus of their buttons. */
function showLegs(kept, legs) {
  const shown = JSON.stringify(legs);
  if (kept.shown === shown) return;
  kept.shown = shown;
  kept.legs.replaceChildren(...legs.map((leg) => makeLeg(leg, kept.page)));
  showLevels(kept.callSid);
}

function show(call) {
  let kept = rows.get(call.call_sid);
  if (!kept) {
    kept = make(call);
    rows.set(call.call_sid, kept);
    body.prepend(kept.row);
    showTimes(kept.row);
  }
  kept.status.className = `status ${call.status}`;
  kept.status.textContent = given.status[call.status] ?? call.status;
  showLegs(kept, call.legs);
  kept.since = new Date(call.answered_at ?? call.created_at);
}

function hide(callSid) {
  if (rows.get(callSid)?.row.querySelector("[data-heard]")) stopListening();
  rows.get(callSid)?.row.remove();
  rows.delete(callSid);
  levels.delete(callSid);
}

function summary() {
  const shown = calls.size;
  document.getElementById("live-table").hidden = shown === 0;
  document.getElementById("live-none").hidden = shown !== 0;
  document.getElementById("count").textContent = `${Math.max(shown, total)} ${texts.up}`;
  const more = document.getElementById("live-more");
  more.hidden = total <= shown;
  more.textContent = `${total - shown} ${texts.more}`;
}

function durations() {
  const now = Date.now();
  for (const { duration, since } of rows.values()) duration.textContent = clock((now - since) / 1000);
}

function replace(data) {
  calls = new Map(data.calls.map((call) => [call.call_sid, call]));
  total = data.total;
  for (const callSid of [...rows.keys()]) if (!calls.has(callSid)) hide(callSid);
  for (const call of [...calls.values()].reverse()) show(call);
  summary();
  durations();
}

function change(changed) {
  for (const call of changed) {
    const known = calls.has(call.call_sid);
    if (call.active) {
      if (!known) total += 1;
      calls.set(call.call_sid, call);
      show(call);
    } else if (known) {
      calls.delete(call.call_sid);
      total = Math.max(0, total - 1);
      hide(call.call_sid);
    }
  }
  summary();
  durations();
}

async function refresh() {
  const answer = await fetch("/console/live/calls", { headers: { Accept: "application/json" } }).catch(() => null);
  if (answer?.ok) replace(await answer.json());
}

replace(given.data);
// What has changed between the page and the stream is not in either.
listen({ every: true, onCalls: change, onRefresh: refresh, onHello: refresh, onLevels: measured });
setInterval(durations, 1000);
