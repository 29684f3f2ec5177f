// The time axis of a call: loads it, draws it, plays the recording in step with it, and keeps it up to date.
import { listen } from "./events.js";
import { draw, seconds } from "./ladder.js";
import { Overview } from "./overview.js";
import { QualityPlots } from "./quality.js";

const LOAD_AGAIN_MS = 500;
const MEASURED_MS = 5000;

export function follow(axis, { onData = () => {} } = {}) {
  const texts = JSON.parse(axis.querySelector("#axis-texts").textContent);
  const find = (name) => axis.querySelector(`#${name}`);
  const player = find("player");
  const dialog = find("entry");
  let data = null;
  let wave = null;
  let ladder = null;
  let timer = null;
  let loading = false;
  let measured = 0;

  const quality = new QualityPlots(find("quality"), texts);
  const begin = () => data?.recording?.at_ms ?? 0;
  const overview = new Overview(find("overview"), texts, (ms) => {
    if (player.hidden) return;
    player.currentTime = Math.max(0, (ms - begin()) / 1000);
    move();
  });

  function move() {
    const at = begin() + player.currentTime * 1000;
    overview.move(at);
    quality.move(at);
    ladder?.move(at);
  }

  function open(entry) {
    dialog.querySelector("h2").textContent = `${seconds(entry.at)}  ${entry.title}`;
    dialog.querySelector("pre").textContent = entry.body;
    dialog.showModal();
    if (!player.hidden && player.paused) { player.currentTime = Math.max(0, (entry.at - begin()) / 1000); move(); }
  }

  function drawLadder() {
    const shown = new Set([...axis.querySelectorAll("[name=kind]:checked")].map((box) => box.value));
    ladder = draw(find("ladder"), data, texts, shown, open);
    if (!player.hidden && !player.paused) move();
  }

  function notes() {
    const t = texts.script;
    const told = [];
    if (!data.sip.length && !data.journal.length) told.push(t.gone);
    if (data.dropped) told.push(`${data.dropped} ${t.dropped}`);
    if (data.webhooks === null) told.push(t.no_webhooks);
    find("axis-notes").textContent = told.join(" ");
  }

  async function showRecording() {
    const { recording } = data;
    const t = texts.script;
    find("recording").textContent = { "in-progress": t.recording_running, paused: t.recording_running, deleted: t.recording_deleted, failed: t.recording_failed }[recording?.status] ?? "";
    const ready = recording?.status === "completed";
    if (ready && player.hidden) {
      player.src = recording.url;
      player.hidden = false;
      const answer = await fetch(recording.waveform);
      if (answer.ok) wave = await answer.json();
      find("sides").hidden = wave?.channels.length !== 2;
    }
    if (!ready) player.hidden = true;
  }

  async function load() {
    if (loading) { later(); return; }
    loading = true;
    try {
      const answer = await fetch(axis.dataset.timeline, { headers: { Accept: "application/json" } });
      if (!answer.ok) { find("axis-notes").textContent = texts.script.failed; return; }
      data = await answer.json();
      await showRecording();
      notes();
      overview.show(data, wave);
      quality.show(data);
      drawLadder();
      onData(data);
    } catch {
      // The server is away; the event stream says when it is back.
    } finally {
      loading = false;
    }
  }

  function later() {
    timer ??= setTimeout(() => { timer = null; load(); }, LOAD_AGAIN_MS);
  }

  /** Levels have changed: what is measured is drawn anew after a while, if somebody sees it. */
  function heard() {
    if (document.hidden || performance.now() < measured + MEASURED_MS) return;
    measured = performance.now();
    later();
  }

  let frame = 0;
  const tick = () => { move(); if (!player.paused) frame = requestAnimationFrame(tick); };
  player.addEventListener("play", () => { cancelAnimationFrame(frame); tick(); });
  player.addEventListener("seeked", move);
  axis.addEventListener("change", (event) => { if (event.target.name === "kind" && data) drawLadder(); });
  // The axis of a call that is up goes on between its events.
  setInterval(() => {
    if (!data?.call.active) return;
    data.now_ms += 1000;
    overview.show(data, wave);
    quality.show(data);
  }, 1000);
  load();
  return { load, later, heard };
}

/** Follow the events of the call of an axis; returns a function that ends it. */
export const listenTo = (axis, followed) => listen({
  call: axis.dataset.call,
  onCalls: followed.later,
  onRefresh: followed.load,
  onHello: followed.later,
  onLevels: followed.heard,
});

const clock = (total) => `${Math.floor(total / 60)}:${String(Math.floor(total % 60)).padStart(2, "0")}`;

export function showFacts(call, texts) {
  const status = document.querySelector("#status .status");
  if (!status) return;
  status.className = `status ${call.status}`;
  status.textContent = texts.status[call.status] ?? call.status;
  const set = (name, value) => { const place = document.getElementById(name); if (place && value) place.textContent = value; };
  const until = call.ended_at ? new Date(call.ended_at) : new Date();
  if (call.answered_at) set("talked", clock(Math.max(0, (until - new Date(call.answered_at)) / 1000)));
  set("cause", call.hangup_cause && `${call.hangup_cause}${call.hangup_source ? `, ${call.hangup_source}` : ""}`);
  set("sip-status", call.sip_status && `${call.sip_status} ${call.sip_reason ?? ""}`);
  if (call.price !== null) set("price", `\u20b9${call.price.toFixed(2)}`);
}

// The page of a call, or of a first call that was placed.
const axis = document.querySelector(".axis[data-timeline]");
if (axis) {
  const texts = JSON.parse(axis.querySelector("#axis-texts").textContent);
  let call = null;
  let ended = null;
  const followed = follow(axis, {
    onData(data) {
      // The quality of its legs is known at the end, and its buttons change; what was done to it is past.
      if (document.getElementById("facts") && ended === false && !data.call.active && data.call.recording_status !== "in-progress") { window.location.replace(window.location.pathname); return; }
      ended = !data.call.active;
      call = data.call;
      showFacts(call, texts);
    },
  });
  listenTo(axis, followed);
  setInterval(() => { if (call?.active) showFacts(call, texts); }, 1000);
}
