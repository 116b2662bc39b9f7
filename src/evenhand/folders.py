"""Moved to `evenhand.files`; removed when every room imports from there."""

from evenhand.files import DISK_FULL as NO_ROOM
from evenhand.files import PARTIAL, RunFolder, user_cache, versions
from evenhand.files import RESUMES as GOES_ON

__all__ = ["GOES_ON", "NO_ROOM", "PARTIAL", "RunFolder", "user_cache", "versions"]
