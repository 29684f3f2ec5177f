"""
The Model Context Protocol over HTTP, for agents that use the tools of an account.

`engine` is the only module that imports the protocol's SDK, which takes a second and 20 MB, so it is imported
on the first request.
"""
