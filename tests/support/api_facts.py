"""Accounts, keys and identifiers that the fakes know, and the moment everything is from."""

from __future__ import annotations

from datetime import UTC, datetime

ACCOUNT = "11111111-1111-4111-8111-111111111111"
OTHER_ACCOUNT = "22222222-2222-4222-8222-222222222222"
KEY = "vp_0123456789abcdefghijklmnopqrstuvwxyz"
READER_KEY = "vp_reader_789abcdefghijklmnopqrstuvwxyz"
REVOKED_KEY = "vp_revoked_89abcdefghijklmnopqrstuvwxyz"
MESSAGING_KEY = "vp_messaging_abcdefghijklmnopqrstuvwxyz"
TOOLS_KEY = "vt_tools_56789abcdefghijklmnopqrstuvwxyz"
NUMBER_ID = "33333333-3333-4333-8333-333333333333"
CALL_SID = "44444444-4444-4444-8444-444444444444"
ENDED_SID = "55555555-5555-4555-8555-555555555555"
OTHER_CALL_SID = "66666666-6666-4666-8666-666666666666"
CARRIER_SID = "77777777-7777-4777-8777-777777777777"
OTHER_CARRIER_SID = "88888888-8888-4888-8888-888888888888"
GATEWAY_SID = "99999999-9999-4999-8999-999999999999"
OTP_ID = "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
APP_SID = "aaaaaaaa-9999-4999-8999-999999999999"
OTHER_APP_SID = "bbbbbbbb-9999-4999-8999-999999999999"
AGENT_ID = "cccccccc-9999-4999-8999-999999999999"
OTHER_AGENT_ID = "dddddddd-9999-4999-8999-999999999999"
NOWHERE = "00000000-0000-4000-8000-000000000000"
MOMENT = datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=UTC)
SCOPES = frozenset(
    {"calls.read", "calls.write", "numbers.read", "numbers.write", "trunks.read", "trunks.write"}
    | {"otp.send", "otp.read", "webhooks.read", "webhooks.write", "masking.read", "masking.write"}
)
