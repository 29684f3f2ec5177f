/**
 * A telephone for web pages: calls from the browser and is called, by WebRTC. No dependencies.
 *
 *   import { Phone } from "https://your-server/webrtc/trunkline-phone.js";
 *   const phone = new Phone({ token });
 *   const call = await phone.call("+918047000001");
 *   call.addEventListener("state", () => console.log(call.state, call.reason));
 *   call.digit("1"); call.mute(); call.hold(); call.hangup();
 *   phone.addEventListener("incoming", ({ call }) => call.answer());
 *   phone.listen();
 *
 * `token` is the data of the response of POST /v1/webrtc/tokens or its `token` alone, or a function that returns
 * one of these or a promise of one.
 */

const RETRY_MS = [500, 1000, 2000, 4000];
const DIGITS = /^[0-9A-D*#,]+$/i;

/** A refusal by the server: `status`, `code` and, for wrong fields, `errors`. */
export class PhoneError extends Error {
  constructor(status, error) {
    super(error?.message ?? `The server answered ${status}.`);
    this.name = "PhoneError";
    this.status = status;
    this.code = error?.code ?? "UNKNOWN";
    this.errors = error?.details?.errors ?? [];
  }
}

/**
 * A telephone; its event "incoming" has a `call` that rings, "listening" tells a change of `listening`.
 *
 * Options: `token`; `url` of the server (default: where this module came from); `microphone`, constraints of
 * getUserMedia; `iceServers` and `iceTransportPolicy`, of RTCPeerConnection (default of the servers: those that
 * came with the token); `codecs`, names in order of preference, such as ["PCMU"].
 */
export class Phone extends EventTarget {
  constructor({ token, url, microphone = true, iceServers, iceTransportPolicy = "all", codecs = [] }) {
    super();
    if (!token) throw new TypeError("Phone needs a token");
    this._token = token;
    this._url = new URL(url ?? "/", import.meta.url);
    this._microphone = microphone;
    this._iceServers = iceServers;
    this._iceTransportPolicy = iceTransportPolicy;
    this._codecs = codecs;
    this._ringing = new Map();
    this._stop = null;
    this.listening = false;
  }

  /**
   * Call a number; resolves once the server has answered the offer, and rejects if it refuses it.
   *
   * Options: `parameters`, which the called side gets as X- header fields; `stream`, to send in place of the
   * microphone; `audio`, an element that plays the far end, or null to play nothing.
   */
  async call(to, { parameters = {}, stream, audio } = {}) {
    const own = stream === undefined;
    const sent = own ? await navigator.mediaDevices.getUserMedia({ audio: this._microphone }) : stream;
    const call = new Call(this, sent, own, audio === undefined ? new Audio() : audio);
    try {
      await call._begin(to, parameters);
    } catch (error) {
      call._end("the call could not begin");
      throw error;
    }
    return call;
  }

  /** Let the page be called, until `close()`; needs a token with receives_calls. */
  listen() {
    if (this._stop) return;
    this._stop = new AbortController();
    this._listen(this._stop.signal);
  }

  /** Be called no more; calls that are up go on. */
  close() {
    this._stop?.abort();
    this._stop = null;
  }

  async _listen(signal) {
    let failures = 0;
    while (!signal.aborted) {
      try {
        const headers = { Authorization: await this._bearer(), Accept: "text/event-stream" };
        const response = await fetch(new URL("v1/webrtc/events", this._url), { headers, signal });
        if (!response.ok) {
          const answer = await response.json().catch(() => ({}));
          throw new PhoneError(response.status, answer.error);
        }
        failures = 0;
        await this._receive(response.body.pipeThrough(new TextDecoderStream()).getReader());
      } catch (error) {
        if (signal.aborted) break;
        this._changed(false, error);
        if (error instanceof PhoneError && [400, 403].includes(error.status)) break;
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS[Math.min(failures++, RETRY_MS.length - 1)]));
      }
    }
    this._changed(false);
    for (const call of [...this._ringing.values()]) call._over("the page is called no more");
  }

  async _receive(reader) {
    let text = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      text += value;
      const parts = text.split("\n\n");
      text = parts.pop();
      for (const part of parts) {
        const found = /^event: (\w+)\ndata: (.*)$/.exec(part);
        if (found) this._note(found[1], JSON.parse(found[2]));
      }
    }
  }

  _note(name, data) {
    if (name === "ready") {
      this._changed(true);
    } else if (name === "ringing" && !this._ringing.has(data.call_sid)) {
      const call = new Call(this, null, true, new Audio());
      Object.assign(call, { sid: data.call_sid, from: data.from, direction: "incoming", state: "ringing" });
      this._ringing.set(call.sid, call);
      this.dispatchEvent(Object.assign(new Event("incoming"), { call }));
    } else if (name === "over") {
      this._ringing.get(data.call_sid)?._over(data.reason);
    }
  }

  _changed(listening, error = null) {
    if (listening === this.listening && !error) return;
    this.listening = listening;
    this.dispatchEvent(Object.assign(new Event("listening"), { error }));
  }

  async _granted() {
    const given = typeof this._token === "function" ? await this._token() : this._token;
    return typeof given === "string" ? { token: given } : given;
  }

  async _bearer() {
    return `Bearer ${(await this._granted()).token}`;
  }

  /** Configuration of a connection; the credentials of its servers are as new as the token. */
  async _configuration() {
    const iceServers = this._iceServers ?? (await this._granted()).ice_servers ?? [];
    return { iceServers, iceTransportPolicy: this._iceTransportPolicy, bundlePolicy: "max-bundle" };
  }

  async _ask(method, path, body, more = {}) {
    const headers = { Authorization: await this._bearer() };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const text = body === undefined ? undefined : JSON.stringify(body);
    const response = await fetch(new URL(path, this._url), { method, headers, body: text, ...more });
    const answer = response.status === 204 ? {} : await response.json().catch(() => ({}));
    if (!response.ok) throw new PhoneError(response.status, answer.error);
    return answer.data;
  }
}

/**
 * A call; its event "state" is sent at each change of `state`: connecting, ringing, active, ended.
 *
 * Properties: `sid`, `direction` (outgoing, incoming), `from` of an incoming one, `state`, `reason` of the end,
 * `muted`, `held`, `stream` with the far end's audio, `connection`,
 * the RTCPeerConnection.
 */
export class Call extends EventTarget {
  constructor(phone, sent, own, audio) {
    super();
    this.sid = null;
    this.direction = "outgoing";
    this.from = null;
    this.held = false;
    this.state = "connecting";
    this.reason = null;
    this.muted = false;
    this.stream = new MediaStream();
    this._phone = phone;
    this._sent = sent;
    this._own = own;
    this._audio = audio;
    this.connection = new RTCPeerConnection({ bundlePolicy: "max-bundle" });
    this._leave = () => this._tell();
    this._back = () => this._restart();
    this._again = null;
    this._restarting = false;
    this._answering = false;
  }

  /** Answer an incoming call; rejects if another page was first, or without a microphone. */
  async answer({ stream, audio } = {}) {
    if (this.direction !== "incoming" || this.state !== "ringing" || this._answering) {
      throw new Error("the call does not ring");
    }
    this._answering = true;
    try {
      this._own = stream === undefined;
      const { mediaDevices } = navigator;
      this._sent = stream ?? (await mediaDevices.getUserMedia({ audio: this._phone._microphone }));
      if (audio !== undefined) this._audio = audio;
      await this._connect(`v1/webrtc/calls/${this.sid}/answer`, {});
    } catch (error) {
      this._end("the call could not be answered");
      throw error;
    } finally {
      this._phone._ringing.delete(this.sid);
    }
  }

  /** Refuse an incoming call, on all pages. */
  async refuse() {
    this._phone._ringing.delete(this.sid);
    this._end("refused");
    await this._phone._ask("POST", `v1/webrtc/calls/${this.sid}/refuse`);
  }

  _over(reason) {
    if (this._answering) return; // the answer to the answer tells
    this._phone._ringing.delete(this.sid);
    this._end(reason);
  }

  /** Hold the call: nothing is sent or heard, and the other side hears music; `hold(false)` resumes it. */
  async hold(held = true) {
    if (this.state !== "active" || held === this.held) return;
    this.held = held;
    await this._offer(() => {
      this.connection.getTransceivers()[0].direction = held ? "inactive" : "sendrecv";
    });
  }

  /** Hang up. */
  async hangup() {
    const told = this._tell();
    this._end("the browser hung up");
    await told;
  }

  /** Send keys: 0 to 9, *, #, A to D; a comma waits two seconds. */
  digit(keys, { duration = 120, gap = 80 } = {}) {
    if (!DIGITS.test(keys)) throw new TypeError("digits are 0 to 9, *, #, A to D and the comma");
    const sender = this.connection.getSenders().find((item) => item.dtmf);
    if (!sender?.dtmf.canInsertDTMF) throw new Error("the call is not active");
    sender.dtmf.insertDTMF(sender.dtmf.toneBuffer + keys, duration, gap);
  }

  /** Send silence in place of the microphone, or the microphone again. */
  mute(muted = true) {
    for (const track of this._sent?.getAudioTracks() ?? []) track.enabled = !muted;
    this.muted = muted;
  }

  async _begin(to, parameters) {
    await this._connect("v1/webrtc/calls", { to, parameters });
  }

  async _connect(path, wanted) {
    const { connection } = this;
    connection.setConfiguration(await this._phone._configuration());
    connection.addEventListener("track", ({ track }) => {
      this.stream.addTrack(track);
      if (this._audio) {
        this._audio.srcObject = this.stream;
        this._audio.play().catch(() => {}); // a page that was not touched yet may play nothing
      }
    });
    const transceiver = connection.addTransceiver(this._sent.getAudioTracks()[0], { direction: "sendrecv" });
    this._prefer(transceiver);
    await connection.setLocalDescription();
    // The server learns where we are from our checks: nothing of the offer waits for candidates.
    const body = { sdp: connection.localDescription.sdp, ...wanted };
    const made = await this._phone._ask("POST", path, body);
    this.sid = made.call_sid;
    this._turn(made.state);
    await connection.setRemoteDescription({ type: "answer", sdp: made.sdp });
    addEventListener("pagehide", this._leave);
    // A path that is lost may come back by itself; on another network it does not, and the browser knows of that
    // network before the connection finds itself lost.
    addEventListener("online", this._back);
    connection.addEventListener("iceconnectionstatechange", () => {
      if (["disconnected", "failed"].includes(connection.iceConnectionState)) this._restart();
    });
    this._watch();
  }

  _prefer(transceiver) {
    const wanted = this._phone._codecs.map((name) => `audio/${name}`.toLowerCase());
    if (!wanted.length || !transceiver.setCodecPreferences) return;
    const known = RTCRtpReceiver.getCapabilities("audio").codecs;
    const rank = (codec) => (wanted.indexOf(codec.mimeType.toLowerCase()) + 1 || wanted.length + 1);
    transceiver.setCodecPreferences([...known].sort((one, other) => rank(one) - rank(other)));
  }

  async _watch() {
    let failures = 0;
    while (this.state !== "ended") {
      try {
        const seen = await this._phone._ask("GET", `v1/webrtc/calls/${this.sid}?after=${this.state}`);
        failures = 0;
        if (seen.state === "ended") this._end(seen.reason);
        else this._turn(seen.state);
      } catch (error) {
        const over = error instanceof PhoneError && error.status < 500 && error.status !== 429;
        if (over || failures >= RETRY_MS.length) {
          this._end(error.message);
          return;
        }
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS[failures++]));
      }
    }
  }

  async _restart() {
    clearTimeout(this._again);
    await this._phone
      ._configuration()
      .then((configuration) => this.connection.setConfiguration(configuration))
      .catch(() => {}); // the servers of before may still do
    await this._offer(() => this.connection.restartIce()).catch(() => {}); // the watch tells if the call is gone
  }

  /** Offer a change to the server; one at a time. */
  async _offer(change) {
    while (this._restarting) await new Promise((resolve) => setTimeout(resolve, 100));
    if (this.state === "ended") return;
    this._restarting = true;
    const { connection } = this;
    try {
      change();
      await connection.setLocalDescription();
      const body = { sdp: connection.localDescription.sdp };
      const made = await this._phone._ask("PATCH", `v1/webrtc/calls/${this.sid}`, body);
      await connection.setRemoteDescription({ type: "answer", sdp: made.sdp });
    } catch (error) {
      if (connection.signalingState === "have-local-offer") {
        await connection.setLocalDescription({ type: "rollback" });
      }
      if (error instanceof PhoneError) throw error;
      this._again = setTimeout(() => this._restart(), RETRY_MS[0]);
    } finally {
      this._restarting = false;
    }
  }

  async _tell() {
    if (this.sid === null || this.state === "ended") return;
    // Sent even if the page is closing; the server notices anyway, within ten seconds.
    await this._phone._ask("DELETE", `v1/webrtc/calls/${this.sid}`, undefined, { keepalive: true }).catch(() => {});
  }

  _turn(state) {
    if (this.state === state || this.state === "ended") return;
    this.state = state;
    this.dispatchEvent(new Event("state"));
  }

  _end(reason) {
    if (this.state === "ended") return;
    removeEventListener("pagehide", this._leave);
    removeEventListener("online", this._back);
    clearTimeout(this._again);
    this.connection.close();
    if (this._own && this._sent) for (const track of this._sent.getTracks()) track.stop();
    if (this._audio) this._audio.srcObject = null;
    this.reason = reason;
    this._turn("ended");
  }
}
