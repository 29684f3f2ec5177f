// Listening in on a call: a connection that only receives. One at a time.
let current = null;

const post = (path, fields, more = {}) =>
  fetch(path, { method: "POST", body: new URLSearchParams(fields), ...more });

/** A call that is heard. `onEnd` is called once, when it is heard no more. */
class Listening {
  constructor(page, csrf, iceServers, onEnd) {
    this._page = page;
    this._csrf = csrf;
    this._onEnd = onEnd;
    this._sid = null;
    this._ended = false;
    this._audio = new Audio();
    this._leave = () => this.stop();
    this._connection = new RTCPeerConnection({ iceServers, bundlePolicy: "max-bundle" });
  }

  async begin() {
    const connection = this._connection;
    connection.addEventListener("track", ({ track }) => {
      this._audio.srcObject = new MediaStream([track]);
      this._audio.play().catch(() => {}); // a page that was not touched yet may play nothing
    });
    connection.addEventListener("connectionstatechange", () => {
      if (["failed", "closed"].includes(connection.connectionState)) this.stop();
    });
    connection.addTransceiver("audio", { direction: "recvonly" });
    await connection.setLocalDescription();
    const response = await post(`${this._page}/listen`, { csrf: this._csrf, sdp: connection.localDescription.sdp });
    const answer = await response.json().catch(() => ({}));
    if (!response.ok) throw new Error(answer.problem ?? response.statusText);
    this._sid = answer.listener_sid;
    addEventListener("pagehide", this._leave);
    if (this._ended) this._tell();
    else await connection.setRemoteDescription({ type: "answer", sdp: answer.sdp });
  }

  stop() {
    if (this._ended) return;
    this._ended = true;
    removeEventListener("pagehide", this._leave);
    this._connection.close();
    this._audio.srcObject = null;
    this._tell();
    this._onEnd();
  }

  _tell() {
    if (this._sid === null) return;
    // Sent even if the page is closing; the server notices anyway, within ten seconds.
    post(`${this._page}/listen/${encodeURIComponent(this._sid)}/end`, { csrf: this._csrf }, { keepalive: true }).catch(() => {});
  }
}

/** Listen to the call of a page, in place of another one; `onEnd` is called when it is heard no more. */
export async function listenIn(page, csrf, iceServers, onEnd) {
  stopListening();
  const listening = new Listening(page, csrf, iceServers, () => {
    if (current === listening) current = null;
    onEnd();
  });
  current = listening;
  try {
    await listening.begin();
  } catch (error) {
    listening.stop();
    throw error;
  }
}

/** Listen to nothing any more. */
export const stopListening = () => current?.stop();
