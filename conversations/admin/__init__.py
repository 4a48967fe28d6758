"""The reviewer's and operator's view of what came in."""

from conversations.admin.intake import IntakeRecordAdmin
from conversations.admin.sessions import SessionAdmin

__all__ = ["IntakeRecordAdmin", "SessionAdmin"]
