"""What goes wrong, by what it means for the reader. The texts are those of the command line."""

from __future__ import annotations


class Error(RuntimeError):
    """Base of all errors of Chiliad: ``place: what: expected X, got Y. How to fix``.

    ``place`` says where: a file, a key, an option, a step.
    """

    place: str

    def __init__(self, message: str, place: str = "") -> None:
        super().__init__(message)
        self.place = place


class InputError(Error, ValueError):
    """You can fix it; the text says how."""


class UnavailableError(Error):
    """Disk or network did not answer; the same call may work later."""


class CorruptDataError(Error):
    """A checksum or the rule of a format is violated."""


class PeerLostError(Error):
    """Another process is gone."""


class InternalError(Error):
    """A bug of Chiliad. Please report it."""
