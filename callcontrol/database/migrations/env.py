"""Alembic environment: runs the migrations on the caller's connection, within its transaction."""

from alembic import context

from callcontrol.database.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
