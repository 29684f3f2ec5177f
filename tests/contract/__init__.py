"""
The contract: every endpoint of the specification, asked over HTTP of a whole server.

`rows` reads the endpoint list and says what has to be shown of each row; the chapters (`chapter_*`) declare
the cases that show it, as data; `stage` is the server they are asked of, `givens` what has to be there first,
and `edges` what every endpoint does alike.
"""
