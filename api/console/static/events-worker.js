// The events of all pages of a session, in a worker that they share.
import { EventHub } from "./events-hub.js";

const hub = new EventHub(self.name);

self.addEventListener("connect", ({ ports: [port] }) => {
  const member = { wants: {}, tell: (name, data) => port.postMessage({ name, data }) };
  // Of a page that is discarded or that fails only its port tells, and not in each browser.
  port.addEventListener("close", () => hub.leave(member));
  port.addEventListener("message", ({ data: wants }) => {
    hub.leave(member);
    if (wants === null) return;
    member.wants = wants;
    hub.join(member);
  });
  port.start();
});
