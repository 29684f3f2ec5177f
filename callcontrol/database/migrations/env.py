"""Run by alembic: the migrations go over the connection, and within the transaction, of the caller."""

from alembic import context

from callcontrol.database.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
