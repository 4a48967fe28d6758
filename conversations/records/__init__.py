"""Records: recorded sessions in files of all kinds. Pure; no database, no Django.

`streams` makes JSON values of bytes, `detection` says what a value is, `sessions` makes records of them, and
`files` finds the files. What a message says is extraction's business; here only its outermost fields count.
"""

from conversations.records.detection import Record
from conversations.records.files import KNOWN_SUFFIXES, files_in
from conversations.records.sessions import Reader, fitting_session_id
from conversations.records.values import Fault

__all__ = ["KNOWN_SUFFIXES", "Fault", "Reader", "Record", "files_in", "fitting_session_id"]
