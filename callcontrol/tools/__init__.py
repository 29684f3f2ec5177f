"""Tools: what agents and other programs of an account may have this server do, and how they are described."""
