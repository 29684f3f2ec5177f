/*
 * jambonz's own packages for Node as a customer uses them, in an environment of their own.
 *
 * Arguments: folder of the packages, base URL, account, key, webhook secret, the account's number and its id. The program
 * runs an application made with each package, places and changes calls by both REST clients, and fails with a trace at
 * the first result that a program written for jambonz would not expect.
 */
'use strict';

const assert = require('node:assert');
const http = require('node:http');
const path = require('node:path');
const { createRequire } = require('node:module');

const [folder, base, account, key, secret, number, numberId] = process.argv.slice(2);
const packages = createRequire(path.join(folder, 'package.json'));
const jambonz = packages('@jambonz/node-client');
const { WebhookResponse: SdkResponse } = packages('@jambonz/sdk/webhook');
const { JambonzClient } = packages('@jambonz/sdk/client');

const oldSockets = packages('@jambonz/node-client-ws');
const sdkSockets = packages('@jambonz/sdk/websocket');

const PATIENCE_MS = 30000;
const ECHO = '+919800000001', BUSY = '+919800000003', LISTENS = '+919800000009', CHANNEL = '+918001100000';
const told = [];
let origin;

/* Both packages verify a signature as a middleware of Express. */
const verifiers = {
  old: jambonz.WebhookResponse.verifyJambonzSignature(secret),
  sdk: SdkResponse.verifySignature(secret),
};

function verified(kind, request, body) {
  let failure;
  verifiers[kind]({ body, url: request.url, headers: request.headers, get: (name) => request.headers[name.toLowerCase()] },
    {}, (error) => { failure = error; });
  assert.ifError(failure);
}

/* The application: a menu, a party that is busy, and a farewell. */
function answer(kind, route, body) {
  const app = kind === 'old' ? new jambonz.WebhookResponse() : new SdkResponse();
  switch (route) {
    case 'hello':
      return app.tag({ data: { order: 7 } })
        .say({ text: 'Welcome.' })
        .gather({
          input: ['digits'], numDigits: 1, timeout: 20, actionHook: `/${kind}/keys`, say: { text: 'Press two, please.' },
        });
    case 'keys':
      assert.strictEqual(body.reason, 'dtmfDetected');
      assert.strictEqual(body.digits, '2');
      app.dial({ target: [{ type: 'phone', number: BUSY }], answerOnBridge: true, actionHook: `/${kind}/dialled` });
      app.message({ to: ECHO, from: CHANNEL, text: 'We have missed you.', actionHook: `/${kind}/messaged` });
      return app.say({ text: 'Nobody is there.' }).hangup();
    case 'messaged':
      assert.strictEqual(body.message_status, 'success');
      assert.match(body.message_sid, /^[0-9a-f-]{36}$/);
      return null;
    case 'dialled':
      assert.strictEqual(body.dial_call_status, 'busy');
      assert.strictEqual(body.dial_sip_status, 486);
      assert.deepStrictEqual(body.customerData, { order: 7 });
      return null;
    case 'wait':
      return app.pause({ length: 60 });
    case 'farewell':
      return app.say({ text: 'Good bye.' }).hangup();
    default:
      return null;
  }
}

const server = http.createServer((request, response) => {
  let text = '';
  request.on('data', (chunk) => { text += chunk; });
  request.on('end', () => {
    const body = JSON.parse(text);
    const [, kind, route] = request.url.split('/');
    try {
      verified(kind, request, body);
      told.push({ kind, route, body });
      const app = answer(kind, route, body);
      response.setHeader('Content-Type', app ? 'application/json' : 'text/plain');
      response.end(app ? JSON.stringify(app) : 'OK');
    } catch (error) {
      console.error(error);
      process.exit(1);
    }
  });
});

async function eventually(holds, what) {
  const deadline = Date.now() + PATIENCE_MS;
  for (;;) {
    const found = await holds();
    if (found) return found;
    assert(Date.now() < deadline, `waited in vain for ${what}: ${JSON.stringify(told)}`);
    await new Promise((resolve) => { setTimeout(resolve, 50); });
  }
}

async function ask(method, target, body) {
  const response = await fetch(`${base}${target}`, {
    method, body: JSON.stringify(body), headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
  });
  assert(response.ok, `${method} ${target}: ${await response.clone().text()}`);
  return response.json();
}

/* An application over a WebSocket, made with either package: a menu, then verbs that nobody has asked for. */
const ended = [];

function session(kind, app) {
  const { call_sid: callSid } = app;
  app.on('/keys', (body) => {
    assert.strictEqual(body.digits, '2');
    told.push({ kind, route: 'socket-keys', body });
    app.dial({ target: [{ type: 'phone', number: BUSY }], answerOnBridge: true, actionHook: '/dialled' })
      .pause({ length: 60 });
    app.reply();
  });
  app.on('/dialled', (body) => {
    assert.strictEqual(body.dial_call_status, 'busy');
    app.reply();
    /* The list goes on; this replaces it. */
    setTimeout(() => { app.say({ text: 'Good bye.' }).hangup().send(); }, 500);
  });
  app.on('close', () => { ended.push({ kind, callSid }); });
  app.on('jambonz:error', (error) => { console.error(error); process.exit(1); });
  app.gather({ input: ['digits'], numDigits: 1, timeout: 20, actionHook: '/keys', say: { text: 'Press two.' } });
  app.send();
}

async function leadsBySocket(kind) {
  const sockets = http.createServer();
  await new Promise((resolve) => { sockets.listen(0, '127.0.0.1', resolve); });
  const create = kind === 'old' ? oldSockets.createEndpoint : sdkSockets.createEndpoint;
  const service = create({ server: sockets })({ path: '/app' });
  service.on('session:new', (app) => session(kind, kind === 'old' ? app : Object.assign(app, { call_sid: app.callSid })));
  await ask('PUT', `/v1/phone-numbers/${numberId}/inbound`, {
    target: 'webhook', webhook_url: `ws://127.0.0.1:${sockets.address().port}/app`, webhook_format: 'jambonz',
    status_webhook_url: `${origin}/${kind}/status`, force: true,
  });
  await ask('POST', '/v1/sandbox/inbound', { from: LISTENS, to: number, send_digits: 'WWWW2' });
  await eventually(() => ended.some((item) => item.kind === kind), 'the end of a session');
  assert(told.some((item) => item.kind === kind && item.route === 'socket-keys'), 'the keys were told');
  const { body } = told.find((item) => item.kind === kind && item.route === 'socket-keys');
  await eventually(() => statusesOf(body.call_sid).includes('completed'), 'its end');
  sockets.close();
}

const statusesOf = (callSid) => told.filter(({ route, body }) => route === 'status' && body.call_sid === callSid)
  .map(({ body }) => body.call_status);

/* A call from the sandbox goes through the application that one of the packages writes. */
async function leads(kind) {
  await ask('PUT', `/v1/phone-numbers/${numberId}/inbound`, {
    target: 'webhook', webhook_url: `${origin}/${kind}/hello`, webhook_format: 'jambonz',
    status_webhook_url: `${origin}/${kind}/status`, force: true,
  });
  await ask('POST', '/v1/sandbox/inbound', { from: LISTENS, to: number, send_digits: 'WWWW2' });
  const first = await eventually(() => told.find((item) => item.kind === kind && item.route === 'hello'), 'a call');
  assert.strictEqual(first.body.direction, 'inbound');
  assert.strictEqual(first.body.to, number);
  const callSid = first.body.call_sid;
  await eventually(() => statusesOf(callSid).includes('completed'), 'its end');
  for (const route of ['dialled', 'messaged']) {
    assert(told.some((item) => item.kind === kind && item.route === route), `the hook ${route} was asked`);
  }
  assert.strictEqual(statusesOf(callSid)[0], 'trying');
  assert(statusesOf(callSid).includes('in-progress'));
}

async function oldClient() {
  const client = jambonz(account, key, { baseUrl: `${base}/jambonz` });
  const hooks = { call_hook: `${origin}/old/wait`, call_status_hook: { url: `${origin}/old/status`, method: 'POST' } };
  const to = { type: 'phone', number: ECHO };
  const sid = await client.calls.create({ from: number, to, tag: { order: 8 }, ...hooks });
  await eventually(async() => (await client.calls.retrieve(sid)).call_status === 'in-progress', 'the answer');
  const found = await client.calls.retrieve(sid);
  assert.deepStrictEqual([found.call_sid, found.direction, found.to, found.sip_status], [sid, 'outbound', ECHO, 200]);
  const waits = await eventually(() => told.find(({ body }) => body.call_sid === sid && body.call_status === 'in-progress'));
  assert.deepStrictEqual(waits.body.customerData, { order: 8 });
  assert((await client.calls.list()).some((call) => call.call_sid === sid));
  await client.calls.update(sid, { dub: { action: 'addTrack', track: 'office', say: 'Hello.', gain: '-6 dB' } });
  await client.calls.update(sid, { mute_status: 'mute' });
  await client.calls.update(sid, { call_hook: { url: `${origin}/old/farewell`, method: 'POST' } });
  await eventually(() => statusesOf(sid).includes('completed'), 'the farewell');
  assert.deepStrictEqual(statusesOf(sid), ['trying', 'ringing', 'in-progress', 'completed']);
  assert.strictEqual((await client.calls.retrieve(sid)).call_status, 'completed');

  const ended = await client.calls.create({ from: number, to, ...hooks });
  await eventually(async() => (await client.calls.retrieve(ended)).call_status === 'in-progress', 'the second answer');
  await client.calls.update(ended, { call_status: 'completed' });
  await eventually(async() => (await client.calls.retrieve(ended)).call_status === 'completed', 'the second end');
  await assert.rejects(client.calls.retrieve('00000000-0000-4000-8000-000000000000'), /not found/);

  const application = await client.applications.create({ name: 'Menu', ...hooks });
  assert.strictEqual((await client.applications.retrieve(application)).call_hook.url, hooks.call_hook);
  assert((await client.applications.list()).some((item) => item.application_sid === application));
  const third = await client.calls.create({ from: number, to, application_sid: application });
  await eventually(() => told.some(({ route, body }) => route === 'wait' && body.call_sid === third), 'the application');
  await client.calls.delete(third);
  await eventually(async() => (await client.calls.retrieve(third)).call_status === 'completed', 'the third end');
  await client.applications.delete(application);
}

async function newClient() {
  const client = new JambonzClient({ baseUrl: `${base}/jambonz`, accountSid: account, apiKey: key });
  const sid = await client.calls.create({
    from: number, to: { type: 'phone', number: ECHO }, call_hook: `${origin}/sdk/wait`,
    call_status_hook: `${origin}/sdk/status`, timeout: 20,
  });
  await eventually(async() => (await client.calls.get(sid)).call_status === 'in-progress', 'the answer');
  assert((await client.calls.list({ direction: 'outbound', callStatus: 'in-progress' })).some((call) => call.call_sid === sid));
  await client.calls.mute(sid, 'mute');
  await client.calls.redirect(sid, `${origin}/sdk/farewell`);
  await eventually(() => statusesOf(sid).includes('completed'), 'the farewell');
  await assert.rejects(client.calls.whisper(sid, { verb: 'say', text: 'x' }), /400.*whisper/s);
  await assert.rejects(client.calls.delete(sid), /404/);
}

async function main() {
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  origin = `http://127.0.0.1:${server.address().port}`;
  for (const kind of ['old', 'sdk']) await leads(kind);
  for (const kind of ['old', 'sdk']) await leadsBySocket(kind);
  await oldClient();
  await newClient();
}

main().then(() => process.exit(0), (error) => { console.error(error); process.exit(1); });
