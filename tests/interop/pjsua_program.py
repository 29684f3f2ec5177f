"""
A real PJSIP endpoint as a process of its own, driven by JSON lines.

Reads one command a line from standard input and writes one event a line to standard output. It runs
as a script, since a crash or a hanging thread of the library must not take the tests with it.
"""

from __future__ import annotations

import json
import os
import select
import sys
from typing import Any

import pjsua2 as pj

POLL_MS = 10


def tell(event: str, **details: Any) -> None:
    """Write one event."""
    print(json.dumps({"event": event, **details}), flush=True)


class Call(pj.Call):
    """One call; `name` is how commands and events speak of it."""

    def __init__(self, program: Program, account: pj.Account, name: str, call_id: int = -1) -> None:
        super().__init__(account, call_id)
        self.program = program
        self.name = name
        self.tone: pj.ToneGenerator | None = None
        self.recorder: pj.AudioMediaRecorder | None = None

    def onCallState(self, prm: Any) -> None:
        info = self.getInfo()
        tell(
            "state",
            call=self.name,
            state=info.stateText,
            code=info.lastStatusCode,
            reason=info.lastReason,
            setting=int(info.setting.audioCount),
        )
        if info.state == pj.PJSIP_INV_STATE_DISCONNECTED:
            self.tone = self.recorder = None
            self.program.calls.pop(self.name, None)

    def onCallMediaState(self, prm: Any) -> None:
        info = self.getInfo()
        for index, media in enumerate(info.media):
            if media.type == pj.PJMEDIA_TYPE_AUDIO:
                tell("media", call=self.name, status=int(media.status), direction=int(media.dir))
                if media.status == pj.PJSUA_CALL_MEDIA_ACTIVE:
                    self._connect(self.getAudioMedia(index))

    def _connect(self, audio: Any) -> None:
        if self.tone is None:
            self.tone = pj.ToneGenerator()
            self.tone.createToneGenerator(8000, 1)
            tone = pj.ToneDesc()
            tone.freq1, tone.freq2, tone.on_msec, tone.off_msec = self.program.tone_hz, 0, 1000, 0
            tones = pj.ToneDescVector()
            tones.append(tone)
            self.tone.play(tones, True)
            self.recorder = pj.AudioMediaRecorder()
            self.recorder.createRecorder(os.path.join(self.program.folder, f"{self.name}.wav"))
        self.tone.startTransmit(audio)
        audio.startTransmit(self.recorder)

    def onDtmfDigit(self, prm: Any) -> None:
        tell("digit", call=self.name, digit=prm.digit, method=int(getattr(prm, "method", 0)))

    def onCallTransferStatus(self, prm: Any) -> None:
        tell("transfer", call=self.name, code=prm.statusCode, final=bool(prm.finalNotify))

    def onCallTransferRequest(self, prm: Any) -> None:
        tell("transfer_request", call=self.name, target=prm.dstUri)

    def onCallTsxState(self, prm: Any) -> None:
        transaction = prm.e.body.tsxState.tsx
        accepted = transaction.method == "INVITE" and transaction.statusCode < 300
        if transaction.state == (pj.PJSIP_TSX_STATE_TERMINATED if accepted else pj.PJSIP_TSX_STATE_COMPLETED):
            role = "client" if transaction.role == pj.PJSIP_ROLE_UAC else "server"
            tell(
                "transaction",
                call=self.name,
                method=transaction.method,
                code=transaction.statusCode,
                role=role,
            )


class Account(pj.Account):
    """The endpoint's one account."""

    program: Program

    def onIncomingCall(self, prm: Any) -> None:
        self.program.count += 1
        name = f"in{self.program.count}"
        call = Call(self.program, self, name, prm.callId)
        self.program.calls[name] = call
        tell("incoming", call=name, message=prm.rdata.wholeMsg)

    def onRegState(self, prm: Any) -> None:
        tell("registered", code=prm.code, expiration=prm.expiration)


class Program:
    """The endpoint and its commands."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.folder = options["folder"]
        self.tone_hz = options.get("tone_hz", 440)
        self.calls: dict[str, Call] = {}
        self.count = 0
        self.endpoint = pj.Endpoint()
        self.endpoint.libCreate()
        config = pj.EpConfig()
        config.logConfig.level = 5
        config.logConfig.consoleLevel = 0
        config.logConfig.filename = os.path.join(self.folder, f"pjsua-{options['port']}.log")
        config.uaConfig.threadCnt = 0
        config.uaConfig.mainThreadOnly = True
        config.uaConfig.userAgent = "interop"
        config.medConfig.noVad = True
        config.medConfig.ecTailLen = 0
        self.endpoint.libInit(config)
        self._open(options)
        self.endpoint.audDevManager().setNullDev()
        self.endpoint.libStart()
        codecs = options.get("codecs", ["PCMU", "PCMA"])
        for codec in self.endpoint.codecEnum2():
            wanted = codec.codecId.split("/")[0] in codecs
            self.endpoint.codecSetPriority(codec.codecId, 128 if wanted else 0)
        self.account = self._make_account(options)

    def _open(self, options: dict[str, Any]) -> None:
        kinds = {
            "udp": pj.PJSIP_TRANSPORT_UDP,
            "tcp": pj.PJSIP_TRANSPORT_TCP,
            "tls": pj.PJSIP_TRANSPORT_TLS,
        }
        transport = pj.TransportConfig()
        transport.boundAddress = transport.publicAddress = options.get("address", "127.0.0.1")
        transport.port = options["port"]
        if options["transport"] == "tls":
            transport.tlsConfig.certFile = options["certificate"]
            transport.tlsConfig.privKeyFile = options["key"]
            transport.tlsConfig.CaListFile = options["authority"]
            transport.tlsConfig.verifyServer = True
        self.endpoint.transportCreate(kinds[options["transport"]], transport)

    def _make_account(self, options: dict[str, Any]) -> Account:
        config = pj.AccountConfig()
        suffix = "" if options["transport"] == "udp" else f";transport={options['transport']}"
        host = options.get("address", "127.0.0.1")
        config.idUri = f"sip:{options['user']}@{host}:{options['port']}{suffix}"
        config.callConfig.timerUse = {
            "off": pj.PJSUA_SIP_TIMER_INACTIVE,
            "optional": pj.PJSUA_SIP_TIMER_OPTIONAL,
            "required": pj.PJSUA_SIP_TIMER_REQUIRED,
            "always": pj.PJSUA_SIP_TIMER_ALWAYS,
        }[options.get("timer", "optional")]
        config.callConfig.timerSessExpiresSec = options.get("session_expires_s", 1800)
        config.callConfig.timerMinSESec = 90
        config.callConfig.prackUse = {
            "off": pj.PJSUA_100REL_NOT_USED,
            "optional": pj.PJSUA_100REL_OPTIONAL,
            "required": pj.PJSUA_100REL_MANDATORY,
        }[options.get("rel100", "off")]
        # Without these, every endpoint starts at port 4000, which may be another test's.
        config.mediaConfig.transportConfig.port, last_port = options["rtp_ports"]
        config.mediaConfig.transportConfig.portRange = last_port - options["rtp_ports"][0]
        config.mediaConfig.srtpUse = {
            "off": pj.PJMEDIA_SRTP_DISABLED,
            "optional": pj.PJMEDIA_SRTP_OPTIONAL,
            "mandatory": pj.PJMEDIA_SRTP_MANDATORY,
        }[options.get("srtp", "off")]
        # The keys may cross the loopback interface in the clear.
        config.mediaConfig.srtpSecureSignaling = 0
        config.mediaConfig.srtpOpt.keyings = pj.IntVector([pj.PJMEDIA_SRTP_KEYING_SDES])
        if "registrar" in options:
            config.regConfig.registrarUri = options["registrar"]
        if "password" in options:
            config.sipConfig.authCreds.append(
                pj.AuthCredInfo("digest", "*", options["user"], 0, options["password"])
            )
        account = Account()
        account.program = self
        account.create(config)
        return account

    # Commands; each takes the fields of its line.

    def call(self, call: str, uri: str) -> None:
        made = Call(self, self.account, call)
        self.calls[call] = made
        made.makeCall(uri, pj.CallOpParam(True))

    def answer(self, call: str, code: int = 200) -> None:
        prm = pj.CallOpParam(True)
        prm.statusCode = code
        self.calls[call].answer(prm)

    def hangup(self, call: str, code: int = 0) -> None:
        prm = pj.CallOpParam()
        if code:
            prm.statusCode = code
        self.calls[call].hangup(prm)

    def hold(self, call: str) -> None:
        self.calls[call].setHold(pj.CallOpParam())

    def resume(self, call: str) -> None:
        prm = pj.CallOpParam(True)
        prm.opt.flag = pj.PJSUA_CALL_UNHOLD
        self.calls[call].reinvite(prm)

    def update(self, call: str) -> None:
        self.calls[call].update(pj.CallOpParam(True))

    def reinvite(self, call: str) -> None:
        self.calls[call].reinvite(pj.CallOpParam(True))

    def digits(self, call: str, digits: str, method: str = "rfc2833") -> None:
        prm = pj.CallSendDtmfParam()
        prm.digits = digits
        prm.method = pj.PJSUA_DTMF_METHOD_SIP_INFO if method == "info" else pj.PJSUA_DTMF_METHOD_RFC2833
        self.calls[call].sendDtmf(prm)

    def transfer(self, call: str, target: str) -> None:
        self.calls[call].xfer(target, pj.CallOpParam(True))

    def transfer_to_call(self, call: str, other: str) -> None:
        self.calls[call].xferReplaces(self.calls[other], pj.CallOpParam(True))

    def dump(self, call: str) -> None:
        tell("dump", call=call, text=self.calls[call].dump(True, "  "))

    def level(self, call: str) -> None:
        """Return the current level of incoming audio, 0 to 255."""
        tell("level", call=call, level=self.calls[call].getAudioMedia(-1).getTxLevel())

    def run(self) -> None:
        """Serve commands and the library until standard input ends."""
        pending = b""
        while True:
            self.endpoint.libHandleEvents(POLL_MS)
            if not select.select([0], [], [], 0)[0]:
                continue
            chunk = os.read(0, 65536)
            if not chunk:
                break
            *lines, pending = (pending + chunk).split(b"\n")
            for line in lines:
                self._obey(json.loads(line))
        self.endpoint.hangupAllCalls()
        for _ in range(20):
            self.endpoint.libHandleEvents(POLL_MS)

    def _obey(self, command: dict[str, Any]) -> None:
        name = command.pop("do")
        try:
            getattr(self, name)(**command)
        except (pj.Error, KeyError) as error:
            tell("error", command=name, text=str(getattr(error, "reason", error)))


if __name__ == "__main__":
    program = Program(json.loads(sys.argv[1]))
    tell("ready")
    program.run()
    os._exit(0)  # The library's own end is known to hang with objects of Python still about.
