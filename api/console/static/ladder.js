// The ladder of a call: time runs down; lifelines of the parties with the SIP messages between them and the server,
// and beside them events, steps, webhooks and what was said. Everything is text of others: it is only ever set as text.
const NS = "http://www.w3.org/2000/svg";
const ROW = 24;
const TIME = 78;
const LANE = 176;
const SIDE = 470;
const TOP = 46;

function element(name, attributes = {}, ...children) {
  const made = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function text(x, y, content, kind, anchor = "start") {
  const made = element("text", { x, y, class: kind, "text-anchor": anchor });
  made.textContent = content;
  return made;
}

const cut = (content, length) => (content.length > length ? `${content.slice(0, length - 1)}\u2026` : content);
export const seconds = (ms) => `${(ms / 1000).toFixed(ms < 100000 ? 3 : 1)} s`;

function brief(details) {
  // Identifiers come last: a line shows its beginning.
  const last = ([name]) => Number(/_(sid|id)$/.test(name));
  return Object.entries(details)
    .filter(([, value]) => value !== null && typeof value !== "object")
    .sort((one, other) => last(one) - last(other))
    .map(([name, value]) => `${name} ${value}`)
    .join(", ");
}

const outcome = (attempt, t) => [
  attempt.status || attempt.problem || "", attempt.took_ms === null ? t.not_sent : `${attempt.took_ms} ms`,
].join(", ");

function answerText(attempt, t) {
  if (!attempt.status) return "";
  if (attempt.body === null) return `${attempt.is_whole ? "" : `${t.at_least} `}${attempt.body_bytes} ${t.binary}`;
  if (!attempt.body_bytes) return t.empty;
  return attempt.body + (attempt.is_whole ? "" : `\u2026\n${t.cut}`);
}

// A delivery in words: its request, and each attempt with its answer.
function deliveryText(hook, t) {
  const state = `${hook.status}, ${hook.attempts} ${hook.attempts === 1 ? t.attempt : t.attempts}`;
  const parts = [`${hook.method} ${hook.url}\n${state}${hook.next_attempt_at ? `, ${t.pending} ${hook.next_attempt_at}` : ""}`];
  if (!hook.log.length && hook.problem) parts.push(hook.problem);
  parts.push(`${t.request}\n${hook.body}`);
  for (const attempt of hook.log) {
    parts.push(`${t.answer_to} ${attempt.number}, ${seconds(attempt.at_ms)}: ${outcome(attempt, t)}\n${answerText(attempt, t)}`);
  }
  return parts.join("\n\n");
}

// A webhook that the call has asked, in words: details, request and answer.
function askedText(entry, t) {
  const { url, method, status, problem, took_ms: took, attempt, type } = entry.details;
  const parts = [[`${method} ${url}`, `${t.attempt} ${attempt}: ${[status, problem, type, `${took} ms`].filter(Boolean).join(", ")}`].join("\n")];
  if (entry.exchange === undefined) parts.push(t.no_webhooks);
  else if (entry.exchange === null) parts.push(t.no_room);
  else {
    parts.push(`${t.request}\n${entry.exchange.request}`);
    if (status) parts.push(`${t.answer_to} ${attempt}\n${answerText({ status, ...entry.exchange }, t)}`);
  }
  return parts.join("\n\n");
}

// Entries of the axis in order: { at, kind, label, detail, title, body, state, message }
export function entriesOf(data, texts) {
  const t = texts.script;
  const entries = data.sip.map((message) => ({
    at: message.at_ms, kind: "sip", message, title: message.label,
    detail: "", label: message.label,
    body: `${message.out ? t.sent : t.received} ${message.transport} ${message.peer}\n\n${message.text}`,
    state: /^[3-6]\d\d/.test(message.label) && !/^(401|407)/.test(message.label) ? "refused" : "",
  }));
  for (const entry of data.journal) {
    const bad = /failed|error/.test(entry.name) || (entry.details.status ?? 200) >= 300 || entry.details.problem;
    const { method, status, problem, attempt, took_ms } = entry.details;
    const shown = entry.kind !== "webhook"
      ? { label: entry.name, detail: brief(entry.details), title: entry.name, body: JSON.stringify(entry.details, null, 2) }
      : {
        label: `${method} ${entry.name}`, title: `${t.webhook}: ${entry.name}, ${t.attempt} ${attempt}`,
        detail: `${t.attempt} ${attempt}: ${outcome({ status, problem, took_ms }, t)}`, body: askedText(entry, t),
      };
    entries.push({ at: entry.at_ms, kind: entry.kind, state: bad ? "bad" : "", ...shown });
  }
  for (const hook of data.webhooks ?? []) {
    const body = deliveryText(hook, t);
    const count = `${hook.attempts} ${hook.attempts === 1 ? t.attempt : t.attempts}`;
    const answer = hook.response_code ? `${hook.response_code}` : hook.problem ?? "";
    entries.push({
      at: hook.at_ms, kind: "webhook", title: `${t.webhook}: ${hook.event}`, label: `${hook.method} ${hook.event}`,
      detail: `${answer} ${hook.status}, ${count}`,
      state: hook.status === "failed" ? "bad" : hook.status === "pending" ? "wait" : "",
      body,
    });
    for (const attempt of hook.log) {
      // The first one is at the time of its event, if it was not held back.
      if (attempt.number === 1) continue;
      entries.push({
        at: attempt.at_ms, kind: "webhook", title: `${t.webhook}: ${hook.event}, ${t.attempt} ${attempt.number}`,
        label: `${hook.method} ${hook.event}`, detail: `${t.attempt} ${attempt.number}: ${outcome(attempt, t)}`,
        state: attempt.problem ? "bad" : "", body,
      });
    }
  }
  for (const said of data.transcript) {
    entries.push({ at: said.at_ms, kind: "said", label: said.text, detail: "", title: t[said.role] ?? said.role, body: said.text, state: "" });
  }
  if (data.charge) {
    const amount = `\u20b9${(data.charge.paise / 100).toFixed(2)}`;
    entries.push({
      at: data.charge.at_ms, kind: "event", label: t.charge, detail: `${amount}, ${data.charge.billed_s ?? 0} s ${t.billed}`,
      title: t.charge, body: amount, state: "",
    });
  }
  return entries.map((entry, place) => ({ ...entry, place })).sort((one, other) => one.at - other.at || one.place - other.place);
}

function lanesOf(data) {
  const left = data.lanes.filter((lane) => lane.left);
  const right = data.lanes.filter((lane) => !lane.left);
  const places = new Map();
  left.forEach((lane, number) => places.set(lane.lane, TIME + 20 + number * LANE));
  const server = TIME + 20 + left.length * LANE;
  right.forEach((lane, number) => places.set(lane.lane, server + (number + 1) * LANE));
  return { places, server, end: server + right.length * LANE };
}

function sipRow(entry, lanes, y) {
  const { message } = entry;
  const lane = lanes.places.get(message.lane);
  const [from, to] = message.out ? [lanes.server, lane] : [lane, lanes.server];
  const sign = Math.sign(to - from);
  const head = `${to},${y} ${to - sign * 8},${y - 4} ${to - sign * 8},${y + 4}`;
  return [
    element("line", { x1: from, x2: to - sign * 6, y1: y, y2: y, class: "arrow" }),
    element("polygon", { points: head, class: "head" }),
    text((from + to) / 2, y - 7, cut(entry.label, Math.floor(Math.abs(to - from) / 7.6)), "label", "middle"),
  ];
}

function sideRow(entry, lanes, y) {
  const x = lanes.end + 34;
  const label = cut(entry.label, 56);
  const parts = [element("circle", { cx: x, cy: y, r: 4, class: "dot" }), text(x + 12, y + 4, label, "label")];
  if (entry.detail) parts.push(text(x + 22 + label.length * 7.4, y + 4, cut(entry.detail, Math.max(12, 62 - label.length)), "detail"));
  return parts;
}

// Draws the entries; returns where a time is on the axis.
export function draw(holder, data, texts, shown, open) {
  const lanes = lanesOf(data);
  const entries = entriesOf(data, texts).filter((entry) => shown.has(entry.kind));
  const width = lanes.end + 34 + SIDE;
  const svg = element("svg", { width, role: "group" });
  const anchors = [[0, TOP + 4]];
  let y = TOP;
  let last = 0;
  const rows = [];
  for (const entry of entries) {
    const gap = (entry.at - last) / 1000;
    y += ROW + (gap >= 1 ? Math.min(70, 12 * Math.log2(1 + gap)) : 0);
    if (gap >= 1) {
      const middle = y - ROW / 2 - 8;
      svg.append(element("line", { x1: TIME, x2: lanes.end, y1: middle, y2: middle, class: "gap" }));
      svg.append(text(TIME - 8, middle + 4, `+${gap.toFixed(1)} s`, "pause", "end"));
    }
    const leg = entry.message ? ` leg-${entry.message.leg}` : "";
    const row = element("g", {
      role: "button", tabindex: 0, class: `${entry.kind}${leg} ${entry.state}`, "data-at": entry.at,
      "data-name": `${entry.at} ${entry.title} ${entry.detail}`,
    });
    row.append(element("rect", { x: 4, y: y - 15, width: width - 8, height: ROW - 1, rx: 4, class: "hit" }));
    row.append(text(TIME - 8, y + 4, seconds(entry.at), "time", "end"));
    row.append(...(entry.kind === "sip" ? sipRow(entry, lanes, y) : sideRow(entry, lanes, y)));
    row.addEventListener("click", () => open(entry));
    row.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); open(entry); }
    });
    rows.push(row);
    anchors.push([entry.at, y]);
    last = entry.at;
  }
  const end = data.end_ms ?? data.now_ms;
  if (end > last) { y += ROW; anchors.push([end, y]); }
  svg.setAttribute("height", y + 20);
  for (const lane of data.lanes) {
    const x = lanes.places.get(lane.lane);
    svg.append(element("line", { x1: x, x2: x, y1: TOP - 6, y2: y + 8, class: "line" }));
    svg.append(text(x, 18, `${texts.script.leg} ${lane.leg}`, "name", "middle"), text(x, 33, cut(lane.peer, 26), "peer", "middle"));
  }
  if (data.lanes.length) {
    const server = element("g", { class: "server" });
    server.append(element("line", { x1: lanes.server, x2: lanes.server, y1: TOP - 6, y2: y + 8, class: "line" }));
    server.append(text(lanes.server, 18, texts.script.server, "name", "middle"));
    svg.append(server);
  }
  svg.append(...rows);
  const playhead = element("line", { x1: TIME, x2: width - 8, y1: 0, y2: 0, class: "head-line", visibility: "hidden" });
  svg.append(playhead);
  const focused = holder.querySelector(":focus")?.getAttribute("data-name");
  holder.replaceChildren(svg);
  if (focused) [...svg.querySelectorAll("[role=button]")].find((row) => row.getAttribute("data-name") === focused)?.focus();
  return {
    move(ms) {
      const after = anchors.findIndex(([at]) => at > ms);
      const [[fromAt, fromY], [toAt, toY]] = after < 1 ? [anchors.at(-1), anchors.at(-1)] : [anchors[after - 1], anchors[after]];
      const place = toAt > fromAt ? fromY + ((ms - fromAt) / (toAt - fromAt)) * (toY - fromY) : fromY;
      playhead.setAttribute("y1", place);
      playhead.setAttribute("y2", place);
      playhead.setAttribute("visibility", "visible");
    },
  };
}
