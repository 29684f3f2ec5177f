/*
 * Prints, as JSON, an application of each of jambonz's packages for Node that has every verb which runs here, and one of
 * those that are refused. Argument: folder of the packages.
 */
'use strict';

const path = require('node:path');
const { createRequire } = require('node:module');

const packages = createRequire(path.join(process.argv[2], 'package.json'));
const { WebhookResponse: OldResponse } = packages('@jambonz/node-client');
const { WebhookResponse: SdkResponse } = packages('@jambonz/sdk/webhook');

const HOOK = '/next';
const LLM = {
  vendor: 'openai', model: 'gpt-realtime-2', auth: { apiKey: 'sk-proj-0123456789' }, actionHook: HOOK,
  llmOptions: { session_update: { instructions: 'Be brief.', voice: 'marin' } },
};

function runs(app, decline, refer) {
  app.config({ synthesizer: { vendor: 'google', language: 'hi-IN' }, record: { action: 'startCallRecording' } })
    .answer()
    .tag({ data: { order: 7 } })
    .say({ text: 'Hello.', loop: 2 })
    .play({ url: 'https://shop.example/hello.wav' })
    .pause({ length: 1 })
    .gather({ input: ['digits', 'speech'], actionHook: HOOK, timeout: 5, numDigits: 1, say: { text: 'Press one.' } })
    .message({ to: '+919800000001', from: '+918001100000', text: 'Your order.', actionHook: HOOK })
    .dtmf({ dtmf: '12' })
    .dub({ action: 'addTrack', track: 'office', play: 'https://shop.example/office.wav', loop: true, gain: '-10 dB' })
    .dub({ action: 'sayOnTrack', track: 'office', say: 'Ten minutes left.' })
    .dub({ action: 'silenceTrack', track: 'office' })
    .dub({ action: 'removeTrack', track: 'office' })
    .transcribe({ transcriptionHook: HOOK, recognizer: { vendor: 'google', language: 'hi-IN' } })
    .listen({ url: 'wss://agent.example/a', actionHook: HOOK, mixType: 'mono', sampleRate: 16000 })
    .stream({ url: 'wss://agent.example/a' })
    .llm(LLM)
    .conference({ name: 'Desk', beep: true, actionHook: HOOK })
    .dial({ target: [{ type: 'phone', number: '+919800000001' }], actionHook: HOOK, callerId: '+918047000001' })
    .redirect({ actionHook: HOOK });
  app[decline]({ status: 486, reason: 'Busy here' });
  app[refer]({ referTo: '+919800000001', actionHook: HOOK });
  return app.hangup();
}

function refused(app) {
  return app.enqueue({ name: 'sales' }).leave();
}

console.log(JSON.stringify({
  old: { runs: runs(new OldResponse(), 'sip_decline', 'sip_refer'), refused: refused(new OldResponse()) },
  sdk: { runs: runs(new SdkResponse(), 'sipDecline', 'sipRefer'), refused: refused(new SdkResponse()) },
}));
