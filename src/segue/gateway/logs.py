"""The logs of a gateway. Names of models and texts of providers in them are escaped before a handler sees them.

Every logger of the gateway is made by `find_logger`; a test looks for others. Whatever handler and formatter an
operator has configured, a record is one line, and the lines of a traceback are indented.
"""

from __future__ import annotations

import logging
from typing import Final

from segue.foundation.safe_text import in_one_line, printable

_TRACEBACKS: Final = logging.Formatter()


def find_logger(name: str = "segue.gateway") -> logging.Logger:
    """Return a logger whose records are escaped."""
    found = logging.getLogger(name)
    found.addFilter(escape_record)  # adding the same filter again changes nothing
    return found


def escape_record(record: logging.LogRecord) -> bool:
    """Escape the message of a record, and its traceback."""
    message = record.getMessage()
    shown = in_one_line(message)
    if shown != message:
        record.msg, record.args = shown, ()
    if record.exc_info and not record.exc_text:
        text = _TRACEBACKS.formatException(record.exc_info)
        record.exc_text = "  " + printable(text).replace("\n", "\n  ")
    return True
