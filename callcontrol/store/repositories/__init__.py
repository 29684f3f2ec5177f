"""
One module per kind of row: functions that read and write it over a connection passed in.

They are plain functions of a connection, so that one body of code serves SQLite on a thread of its own and
PostgreSQL on the event loop, and so that several of them make one transaction. A function that writes is
safe to repeat in a new transaction after the first one was rolled back.
"""
