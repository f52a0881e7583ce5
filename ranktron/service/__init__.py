"""The service: the store over HTTP.

`service` has all rankers and the journal, and is what Python code in the same process talks to; `http/` answers
requests, `replication/` follows another server, `ingest/` reads feedback from streams.
"""
