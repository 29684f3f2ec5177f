// The event stream of a page. After a lost connection the server says what was missed, or that the page has to
// load its contents anew, which `onRefresh` does.
export function listen({ path = "/console/events", onCalls = () => {}, onRefresh = () => {}, onHello = () => {}, onLevels = () => {} }) {
  const light = document.querySelector("[data-live]");
  const show = (state) => {
    if (!light) return;
    light.classList.toggle("on", state === "on");
    light.classList.toggle("off", state === "off");
    light.textContent = light.dataset[state];
  };
  let source;
  let wait = 1000;
  const open = () => {
    source = new EventSource(path);
    source.addEventListener("hello", () => { wait = 1000; show("on"); onHello(); });
    source.addEventListener("calls", (event) => onCalls(JSON.parse(event.data).calls));
    source.addEventListener("levels", (event) => onLevels(JSON.parse(event.data).levels));
    source.addEventListener("refresh", () => onRefresh());
    source.addEventListener("end", () => window.location.reload());
    source.onerror = () => {
      show("off");
      // The browser tries again by itself unless it was refused: the server starts, or the session is over.
      if (source.readyState !== EventSource.CLOSED) return;
      setTimeout(() => { open(); onRefresh(); }, wait);
      wait = Math.min(wait * 2, 15000);
    };
  };
  open();
  window.addEventListener("pagehide", () => source.close());
  return () => source.close();
}
