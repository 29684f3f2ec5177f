"""
Tables, for SQLite and PostgreSQL.

Every column is text, an integer, a boolean or bytes, so that a row means the same to both drivers and the
hot statements can be passed to the driver without conversion: timestamps are microseconds since the
epoch in UTC (exact, sortable, no time zone to lose), money is paise, structured values are JSON text.

Rows that the in-memory directory mirrors carry ``revision``, the value of ``directory_revision`` when they
were last changed; they are deleted by setting ``deleted_at``, because call records refer to them and because
a deletion must reach the mirrors of other processes too.
"""

from callcontrol.database.tables import accounts as _accounts
from callcontrol.database.tables import agents as _agents
from callcontrol.database.tables import applications as _applications
from callcontrol.database.tables import assistant as _assistant
from callcontrol.database.tables import calls as _calls
from callcontrol.database.tables import campaigns as _campaigns
from callcontrol.database.tables import chat as _chat
from callcontrol.database.tables import contacts as _contacts
from callcontrol.database.tables import masking as _masking
from callcontrol.database.tables import masking_sessions as _masking_sessions
from callcontrol.database.tables import messages as _messages
from callcontrol.database.tables import orders as _orders
from callcontrol.database.tables import otp as _otp
from callcontrol.database.tables import recordings as _recordings
from callcontrol.database.tables import secrets as _secrets
from callcontrol.database.tables import subscriptions as _subscriptions
from callcontrol.database.tables import system as _system
from callcontrol.database.tables import templates as _templates
from callcontrol.database.tables import tools as _tools
from callcontrol.database.tables import trunks as _trunks
from callcontrol.database.tables import wallet as _wallet
from callcontrol.database.tables import webhook_endpoints as _webhook_endpoints
from callcontrol.database.tables import webhooks as _webhooks
from callcontrol.database.tables.columns import metadata

__all__ = ["metadata"]

# Imported to register their tables in the metadata; users import tables by module.
_MODULES = (
    *(_accounts, _agents, _applications, _assistant, _calls, _campaigns),
    *(_chat, _contacts, _masking, _masking_sessions, _messages, _orders),
    *(_otp, _recordings, _secrets, _subscriptions, _system, _templates),
    *(_tools, _trunks, _wallet, _webhook_endpoints, _webhooks),
)
