"""
Engine, writer, tables and migrations.

SQL of a feature is in its ``store``: plain functions of a connection passed in, so that one body of code
serves SQLite on a thread of its own and PostgreSQL on the event loop, and so that several of them make one
transaction. A function that writes is safe to repeat in a new transaction after the first one was rolled
back.
"""
