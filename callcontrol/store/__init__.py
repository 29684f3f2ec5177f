"""Tables, migrations and the functions that read and write them over a connection passed in."""
