// What every page has: the menu on narrow screens, local times, questions before deletions, buttons that copy,
// forms whose fields are of a choice, fields for a time, which is that of the browser here and UTC there, and the
// events that concern all: the end of the session, and a server that was away.
import { listen } from "./events.js";

const AWAY_MS = 2000;
const zone = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

export function showTimes(root = document) {
  for (const element of root.querySelectorAll("time[datetime]:not([data-shown])")) {
    const at = new Date(element.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    element.title = element.dateTime;
    element.textContent = zone.format(at);
    element.dataset.shown = "";
  }
}

function menu() {
  const button = document.querySelector("[data-menu]");
  const rail = document.getElementById("pages");
  button?.addEventListener("click", () => {
    const open = rail.classList.toggle("open");
    button.setAttribute("aria-expanded", String(open));
  });
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.dataset.confirm && !window.confirm(form.dataset.confirm)) {
    event.preventDefault();
    return;
  }
  // A second click would do it twice. A form that a script sends is the matter of that script.
  if (form.method === "post" && !event.defaultPrevented) setTimeout(() => form.querySelectorAll("button").forEach((it) => { it.disabled = true; }));
});
window.addEventListener("pageshow", () => document.querySelectorAll("form button").forEach((it) => { it.disabled = false; }));

document.addEventListener("click", async (event) => {
  const button = event.target.closest?.("[data-copy]");
  if (!button) return;
  const label = button.textContent;
  await navigator.clipboard.writeText(button.parentElement.querySelector("code").textContent);
  button.textContent = button.dataset.copied;
  setTimeout(() => { button.textContent = label; }, 1500);
});

/** Show the fields of what is chosen, and send no others. */
function showFields(form) {
  const chosen = form.elements[form.dataset.by].value;
  for (const field of form.querySelectorAll("[data-of]")) {
    field.hidden = !field.dataset.of.split(" ").includes(chosen);
    field.querySelector("input, select, textarea").disabled = field.hidden;
  }
}

const showAllFields = () => document.querySelectorAll("form[data-by]").forEach(showFields);
document.addEventListener("change", (event) => { if (event.target.name === event.target.form?.dataset.by) showFields(event.target.form); });
// After the way back a browser fills forms as they were left.
window.addEventListener("pageshow", showAllFields);

/** Show the time of a field in the browser's zone; its form sends it in UTC. */
function localMoment(field) {
  const label = document.querySelector(`label[for="${field.id}"]`);
  label.textContent = label.dataset.local;
  const at = new Date(`${field.value}Z`);
  if (field.value) field.value = new Date(at - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

document.addEventListener("formdata", ({ target, formData }) => {
  for (const field of target.querySelectorAll("[data-utc]")) {
    const at = new Date(field.value);
    // The value keeps its precision: an end at a minute is the end of that minute.
    if (!Number.isNaN(at.getTime())) formData.set(field.name, `${at.toISOString().slice(0, field.value.length)}Z`);
  }
});

/**
 * End with the session, and catch up with a server that was restarted: by loading the page anew, unless that would
 * lose what was typed or shown once, or the page does it by itself.
 */
function follow() {
  const { session, missed } = document.body.dataset;
  if (!session) return;
  const notice = (name) => document.querySelector(`[data-notice=${name}]`);
  let typed = false;
  let leaving = false;
  let away = null;
  document.addEventListener("input", () => { typed = true; });
  // The answer to a form leads on, that to signing out too.
  document.addEventListener("submit", (event) => { leaving = !event.defaultPrevented; });
  listen({
    onHello: () => { clearTimeout(away); notice("away").hidden = true; },
    onLost: () => { clearTimeout(away); away = setTimeout(() => { notice("away").hidden = false; }, AWAY_MS); },
    onRefresh: () => {
      if (missed === "own" || leaving) return;
      if (missed === "load" && !typed) window.location.reload();
      else notice("stale").hidden = false;
    },
    onEnd: () => {
      if (leaving) return;
      if (missed === "say") window.location.assign("/console");
      else window.location.reload();
    },
  });
}

menu();
showTimes();
showAllFields();
document.querySelectorAll("[data-utc]").forEach(localMoment);
follow();
