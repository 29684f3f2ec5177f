/*
 * Twilio's library for Node as a customer uses it, in an environment of its own.
 *
 * Arguments: base URL, account, key, numbers to call from and to, number of the channel. It fails with a
 * trace at the first result that a program written for Twilio would not expect.
 */
"use strict";

const assert = require("node:assert/strict");
const http = require("node:http");
const twilio = require("twilio");

const PATIENCE_MS = 30000;
const RINGS = "+919800000004";
const WAIT = "<Response><Pause length='60'/></Response>";
const DAY_MS = 86400000;

const pause = () => new Promise((resolve) => setTimeout(resolve, 50));

/* Waits until it holds. */
async function eventually(holds) {
  const deadline = Date.now() + PATIENCE_MS;
  while (!(await holds())) {
    assert.ok(Date.now() < deadline, `waited in vain: ${holds}`);
    await pause();
  }
}

/* A server that answers every form with TwiML, and keeps the forms and their signatures. */
class Shop {
  constructor() {
    this.forms = { "/voice": [], "/status": [] };
    this.server = http.createServer((request, response) => {
      const parts = [];
      request.on("data", (part) => parts.push(part));
      request.on("end", () => {
        const form = Object.fromEntries(new URLSearchParams(Buffer.concat(parts).toString()));
        this.forms[request.url].push({ form, signature: request.headers["x-twilio-signature"] });
        response.setHeader("Content-Type", "text/xml");
        response.end(WAIT);
      });
    });
  }

  async open() {
    await new Promise((resolve) => this.server.listen(0, "127.0.0.1", resolve));
    this.url = `http://127.0.0.1:${this.server.address().port}`;
  }
}

/* Places a call by a URL and one by a document; gives the one other instructions, ends both. */
async function placeAndChange(client, shop, from, to) {
  const call = await client.calls.create({
    to,
    from,
    url: `${shop.url}/voice`,
    method: "POST",
    statusCallback: `${shop.url}/status`,
    statusCallbackEvent: ["initiated", "ringing", "answered", "completed"],
    timeout: 20,
    machineDetection: "Enable",
    sendDigits: "w1",
    record: true,
    recordingChannels: "dual",
  });
  assert.ok(["queued", "ringing"].includes(call.status));
  assert.equal(call.direction, "outbound-api");
  await eventually(() => shop.forms["/voice"].length);
  const [asked] = shop.forms["/voice"];
  assert.equal(asked.form.CallSid, call.sid);
  assert.equal(asked.form.CallStatus, "in-progress");
  assert.equal((await client.calls(call.sid).fetch()).status, "in-progress");
  await client.calls(call.sid).update({ twiml: "<Response><Pause length='1'/><Hangup/></Response>" });
  await eventually(async () => (await client.calls(call.sid).fetch()).status === "completed");
  await eventually(() => shop.forms["/status"].length === 4);
  const told = shop.forms["/status"].map(({ form }) => [form.SequenceNumber, form.CallStatus]);
  assert.deepEqual(told.sort(), [["0", "initiated"], ["1", "ringing"], ["2", "in-progress"], ["3", "completed"]]);
  assert.ok([...shop.forms["/status"], asked].every(({ signature }) => signature));

  const unanswered = await client.calls.create({ to: RINGS, from, twiml: WAIT });
  await eventually(async () => (await client.calls(unanswered.sid).fetch()).status === "ringing");
  await client.calls(unanswered.sid).update({ status: "canceled" });
  await eventually(async () => (await client.calls(unanswered.sid).fetch()).status === "canceled");

  const other = await client.calls.create({ to, from, twiml: WAIT });
  await eventually(async () => (await client.calls(other.sid).fetch()).status === "in-progress");
  assert.equal((await client.calls(other.sid).update({ status: "completed" })).status, "completed");
  await eventually(async () => (await client.calls(other.sid).fetch()).endTime !== null);
  const done = await client.calls(other.sid).fetch();
  assert.equal(done.status, "completed");
  assert.ok(done.dateCreated instanceof Date && Number(done.price) <= 0);
  return call.sid;
}

/* Reads a list by small pages, and by filters. */
async function listCalls(client, to) {
  const every = await client.calls.list({ pageSize: 1 });
  assert.ok(every.length >= 2 && new Set(every.map((call) => call.sid)).size === every.length);
  assert.deepEqual((await client.calls.list({ limit: 1 })).map((call) => call.sid), [every[0].sid]);
  assert.ok((await client.calls.list({ to, status: "completed" })).length >= 2);
  const tomorrow = new Date(Date.now() + DAY_MS);
  assert.deepEqual(await client.calls.list({ startTimeAfter: tomorrow }), []);
  assert.equal((await client.calls.list({ startTimeBefore: tomorrow })).length, every.length);
  const page = await client.calls.page({ pageSize: 1 });
  const next = await page.nextPage();
  assert.equal(next.instances[0].sid, every[1].sid);
  assert.equal((await next.previousPage()).instances[0].sid, every[0].sid);
}

/* Finds the recording of a call by each way, and deletes it. */
async function readRecordings(client, callSid) {
  await eventually(async () => {
    const [found] = await client.recordings.list({ callSid });
    return found !== undefined && found.status === "completed";
  });
  const [recording, ...others] = await client.recordings.list();
  assert.deepEqual(others, []);
  assert.ok(recording.callSid === callSid && Number(recording.duration) >= 1);
  assert.equal((await client.calls(callSid).recordings.list())[0].sid, recording.sid);
  assert.equal((await client.recordings(recording.sid).fetch()).sid, recording.sid);
  assert.equal(await client.recordings(recording.sid).remove(), true);
  assert.deepEqual(await client.recordings.list(), []);
}

/* Finds a conference and its calls; mutes, holds and removes one, and ends it for the other. */
async function steerAConference(client, from, to) {
  const twiml = "<Response><Dial><Conference>sales</Conference></Dial><Pause length='60'/></Response>";
  const calls = [await client.calls.create({ to, from, twiml }), await client.calls.create({ to, from, twiml })];
  const going = { friendlyName: "sales", status: "in-progress" };
  await eventually(async () => (await client.conferences.list(going)).length);
  const [{ sid }] = await client.conferences.list(going);
  const conference = client.conferences(sid);
  assert.equal((await conference.fetch()).friendlyName, "sales");
  await eventually(async () => (await conference.participants.list()).length === 2);
  const members = (await conference.participants.list()).map((member) => member.callSid);
  assert.deepEqual([...members].sort(), calls.map((call) => call.sid).sort());
  const member = conference.participants(members[0]);
  assert.equal((await member.update({ muted: true })).muted, true);
  assert.equal((await conference.participants.list({ muted: true })).length, 1);
  assert.equal((await member.update({ muted: false })).muted, false);
  assert.equal((await member.update({ hold: true })).hold, true);
  assert.equal((await member.fetch()).hold, true);
  assert.equal(await member.remove(), true);
  await eventually(async () => (await conference.participants.list()).length === 1);
  assert.equal((await client.calls(members[0]).fetch()).status, "in-progress");
  assert.equal((await conference.update({ status: "completed" })).status, "completed");
  assert.deepEqual(await client.conferences.list(), []);
  for (const call of calls) await client.calls(call.sid).update({ status: "completed" });
}

/* Sends a text and a picture, follows the one, and finds both. */
async function sendAMessage(client, from, to) {
  const text = await client.messages.create({ to, from, body: "Your parcel is here." });
  const picture = await client.messages.create({
    to: `whatsapp:${to}`,
    from: `whatsapp:${from}`,
    mediaUrl: ["https://example.com/shop.png"],
  });
  assert.deepEqual([text.direction, picture.numMedia], ["outbound-api", "1"]);
  await eventually(async () => (await client.messages(text.sid).fetch()).status === "read");
  const found = (await client.messages.list({ to, pageSize: 1 })).map((message) => message.sid);
  assert.deepEqual(found.sort(), [text.sid, picture.sid].sort());
}

/* Reads refusals as the library reads those of Twilio. */
async function beRefused(client, from, to, channel) {
  const refusal = async (act) => {
    try {
      await act();
    } catch (error) {
      return error;
    }
    return assert.fail(`nothing was refused: ${act}`);
  };
  const codes = async (act) => {
    const { status, code } = await refusal(act);
    return [status, code];
  };
  const trimmed = await refusal(() => client.calls.create({ to, from, twiml: WAIT, trim: "trim-silence" }));
  assert.deepEqual([trimmed.status, trimmed.code], [400, 20001]);
  assert.match(trimmed.message, /Trim/);
  assert.deepEqual(await codes(() => client.calls.create({ to, from })), [400, 21205]);
  assert.deepEqual(await codes(() => client.calls.create({ to, from, url: "ftp://x" })), [400, 21205]);
  assert.deepEqual(await codes(() => client.calls.create({ to, from: to, twiml: WAIT })), [403, 21210]);
  assert.deepEqual(await codes(() => client.calls.create({ to: "nobody", from, twiml: WAIT })), [400, 21211]);
  assert.deepEqual(await codes(() => client.calls.create({ to, from: "nobody", twiml: WAIT })), [400, 21212]);
  const file = { to, from: channel, mediaUrl: ["ftp://x"] };
  assert.deepEqual(await codes(() => client.messages.create(file)), [400, 21620]);
  assert.deepEqual(await codes(() => client.calls("00000000-0000-4000-8000-000000000000").fetch()), [404, 20404]);
  const [ended] = await client.calls.list({ status: "completed", limit: 1 });
  assert.deepEqual(await codes(() => client.calls(ended.sid).update({ status: "completed" })), [404, 20404]);
  const answered = await client.calls.create({ to, from, twiml: WAIT });
  await eventually(async () => (await client.calls(answered.sid).fetch()).status === "in-progress");
  assert.deepEqual(await codes(() => client.calls(answered.sid).update({ status: "canceled" })), [409, 21220]);
  await client.calls(answered.sid).update({ status: "completed" });
}

async function main(baseUrl, accountSid, key, from, to, channel) {
  const client = twilio(`AC${accountSid.replaceAll("-", "")}`, key);
  client.api.baseUrl = baseUrl;
  const shop = new Shop();
  await shop.open();
  const callSid = await placeAndChange(client, shop, from, to);
  await listCalls(client, to);
  await readRecordings(client, callSid);
  await steerAConference(client, from, to);
  await sendAMessage(client, channel, to);
  await beRefused(client, from, to, channel);
}

main(...process.argv.slice(2)).then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
