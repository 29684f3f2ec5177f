// Events of the server for many pages over one connection: browsers open six to a host, and a page has one or two
// of its own. A member is a page: what it wants, and a function that tells it. If what all of them want changes,
// another connection takes over, and the former is closed once that one stands: nothing is missed between the two.
const RETRY_MS = 1000;
const MOST_RETRY_MS = 15_000;
// The server sends something every 15 s: a connection that is silent for so long is broken.
const SILENCE_MS = 45_000;
const SHRINK_MS = 1000;
const MOST_CALLS = 50;

export class EventHub {
  /** For the pages of a session: whatever session a cookie is of by then, they get nothing of another one. */
  constructor(session) {
    this._session = session;
    this._members = new Set();
    this._connection = null;
    this._place = null;
    this._timer = null;
  }

  /** Begin to tell a member: `{ wants: { every, call }, tell(name, data) }`. */
  join(member) {
    this._members.add(member);
    this._follow();
  }

  /** Tell it nothing any more. */
  leave(member) {
    if (!this._members.delete(member)) return;
    member.greeted = false;
    // A page that is left for another one takes its place again at once.
    clearTimeout(this._timer);
    this._timer = setTimeout(() => this._follow(), SHRINK_MS);
  }

  _follow() {
    clearTimeout(this._timer);
    const connection = this._connection;
    if (this._members.size === 0) {
      connection?.close();
      this._connection = null;
      // Who comes back is told by the server what was missed.
      this._place = connection?.lastId ?? this._place;
      return;
    }
    const path = this._path();
    if (connection?.path !== path) this._connection = new Connection(path, this, connection, this._place);
    else if (connection.standing) this.greet();
  }

  _path() {
    const wants = [...this._members].map((member) => member.wants);
    // Of too many those of the pages that came last: the first may be of pages that went without a word.
    const latest = new Set(wants.map((one) => one.call).filter(Boolean).reverse());
    const calls = [...latest].slice(0, MOST_CALLS).sort();
    const query = [["session", this._session], ...calls.map((call) => ["call", call])];
    if (wants.some((one) => one.every)) query.push(["calls", "all"]);
    if (query.length > 1) query.push(["levels", "1"]);
    return `/console/events?${new URLSearchParams(query)}`;
  }

  /** Tell members that have come since that they miss nothing from now on. */
  greet() {
    for (const member of this._members) {
      if (!member.greeted) member.tell("hello", {});
      member.greeted = true;
    }
  }

  lost() {
    for (const member of this._members) {
      member.greeted = false;
      member.tell("lost", {});
    }
  }

  /** The session is over. Who comes only now, as from the memory of the browser, has the server asked again. */
  end(connection) {
    if (this._connection === connection) this._connection = null;
    this.take("end", {});
  }

  take(name, data) {
    for (const member of this._members) {
      const mine = of(member.wants, name, data);
      if (mine) member.tell(name, mine);
    }
  }
}

/** What of an event is for a member; null for nothing. */
function of({ every, call }, name, data) {
  if (name === "calls") {
    const calls = every ? data.calls : data.calls.filter((one) => one.call_sid === call);
    return calls.length ? { calls } : null;
  }
  if (name === "levels") {
    if (every) return data;
    return call in data.levels ? { levels: { [call]: data.levels[call] } } : null;
  }
  if (name === "refresh") {
    // Of one call, of all that are followed, or, after a restart, of everything.
    if (data.call) return data.call === call ? data : null;
    return data.only && !every && !call ? null : data;
  }
  return name === "end" ? data : null;
}

/** A connection, in place of another one; it comes back until it is closed or the session is over. */
class Connection {
  constructor(path, hub, former, place) {
    this.path = path;
    this._hub = hub;
    this._open = false;
    this._closed = false;
    this._missed = false;
    this._request = null;
    // One that never stood is of no use any more, but for what it knew.
    this._former = former?._open ? former : (former?._former ?? null);
    this.lastId = former?.standing ? null : (former ? former.lastId : place);
    if (former && former !== this._former) former._stop();
    this._run();
  }

  /** True while nothing is missed, by this one or the former. */
  get standing() {
    return this._open || (this._former?.standing ?? false);
  }

  close() {
    this._former?.close();
    this._former = null;
    this._stop();
  }

  _stop() {
    this._closed = true;
    this._request?.abort();
  }

  async _run() {
    let failures = 0;
    while (!this._closed) {
      await this._read().catch(() => {}); // whatever it was, the connection is no more
      if (this._closed) return;
      failures = this._open ? 0 : failures + 1;
      this._open = false;
      if (!this.standing) {
        this._missed = true;
        this._hub.lost();
      }
      const wait = Math.min(RETRY_MS * 2 ** failures, MOST_RETRY_MS);
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }

  async _read() {
    const request = new AbortController();
    this._request = request;
    let silence = setTimeout(() => request.abort(), SILENCE_MS);
    try {
      const headers = { Accept: "text/event-stream" };
      // While the former stands nothing was missed.
      const lastId = this.lastId ?? (this.standing ? null : this._former?.lastId);
      if (lastId) {
        headers["Last-Event-ID"] = lastId;
        this._missed = false; // the server says what, if anything
      }
      const response = await fetch(this.path, { headers, signal: request.signal, cache: "no-store" });
      if (response.status === 401) this._end();
      if (!response.ok) return;
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        clearTimeout(silence);
        silence = setTimeout(() => request.abort(), SILENCE_MS);
        const blocks = (text + value).split("\n\n");
        text = blocks.pop();
        for (const block of blocks) this._take(block);
      }
    } finally {
      clearTimeout(silence);
      request.abort();
    }
  }

  _take(block) {
    const fields = {};
    for (const line of block.split("\n")) {
      const [, name, value] = /^(\w+): (.*)$/.exec(line) ?? [];
      if (name) fields[name] = value;
    }
    if (fields.id) this.lastId = fields.id;
    if (fields.event === "hello") this._begin();
    else if (fields.event === "end") this._end();
    else if (fields.event) this._hub.take(fields.event, JSON.parse(fields.data));
  }

  _begin() {
    this._open = true;
    this._former?.close();
    this._former = null;
    this._hub.greet();
    // It was away before it could tell a place from which it would go on.
    if (this._missed) this._hub.take("refresh", {});
    this._missed = false;
  }

  _end() {
    this.close();
    this._hub.end(this);
  }
}
