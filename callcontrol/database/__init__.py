"""
Engine, writer, tables and migrations.

SQL of a feature is in its ``store``: plain functions that take a connection, so that the same code serves
SQLite and PostgreSQL, and several functions form one transaction. A function that writes is safe to repeat in
a new transaction after the first one was rolled back.
"""
