// The events of a page: over a connection that all pages of the session share, in a worker. Where a browser has no
// such workers, as on some telephones, a page has a connection of its own as long as it is seen.
import { EventHub } from "./events-hub.js";

const WORKER = new URL("./events-worker.js", import.meta.url);
const session = document.body.dataset.session;
let own = null;

/**
 * Follow the events of a call, of every call, or only those of the session; returns a function that ends it.
 *
 * `onHello` says that from now on nothing is missed, `onRefresh` that something was, so that everything is to be
 * loaded anew; `onLost` that the server does not answer, and `onEnd` that the session is over.
 */
export function listen({ call = null, every = false, onCalls, onRefresh, onHello, onLevels, onLost, onEnd }) {
  const wants = { call, every };
  const light = call || every ? document.querySelector("[data-live]") : null;
  const show = (state) => {
    if (!light) return;
    light.classList.toggle("on", state === "on");
    light.classList.toggle("off", state === "off");
    light.textContent = light.dataset[state];
  };
  const tell = (name, data) => {
    if (name === "hello") {
      show("on");
      onHello?.();
    } else if (name === "lost") {
      show("off");
      onLost?.();
    } else if (name === "calls") onCalls?.(data.calls);
    else if (name === "levels") onLevels?.(data.levels);
    else if (name === "refresh") onRefresh?.();
    else if (name === "end") onEnd?.();
  };
  let line = shared(wants, tell, () => { line = alone(wants, tell); line.join(); }) ?? alone(wants, tell);
  line.join();
  const leave = () => line.leave();
  // A page that is shown again from the browser's memory has missed what has happened meanwhile.
  const back = (event) => { if (event.persisted) { line.join(); onRefresh?.(); } };
  window.addEventListener("pagehide", leave);
  window.addEventListener("pageshow", back);
  return () => {
    leave();
    window.removeEventListener("pagehide", leave);
    window.removeEventListener("pageshow", back);
  };
}

/** By the worker of the session; null where there are none. */
function shared(wants, tell, onFailure) {
  if (!window.SharedWorker) return null;
  const worker = new SharedWorker(WORKER, { type: "module", name: session });
  const { port } = worker;
  worker.addEventListener("error", onFailure, { once: true });
  port.addEventListener("message", ({ data }) => tell(data.name, data.data));
  port.start();
  return { join: () => port.postMessage(wants), leave: () => port.postMessage(null) };
}

/** By the page itself, while it is seen. */
function alone(wants, tell) {
  own ??= new EventHub(session);
  const member = { wants, tell };
  let joined = false;
  const follow = () => {
    if (joined && !document.hidden) own.join(member);
    else own.leave(member);
  };
  document.addEventListener("visibilitychange", follow);
  return { join: () => { joined = true; follow(); }, leave: () => { joined = false; follow(); } };
}
