"""The version of the API that a request names in a header: an emulated provider refuses what that version refuses."""

from __future__ import annotations

from collections.abc import Mapping

from segue.calls import Call
from segue.failures.failure import Failure, FailureKind
from segue.protocols.registry import get_protocol
from segue.reply_encoding import encode_error
from segue.testing.emulator.answering import Answer


def refuse_by_version(call: Call, headers: Mapping[str, str]) -> Answer | None:
    """Give the refusal of a request whose body its version does not accept; None if there is none."""
    versions = get_protocol(call.protocol).versions
    if versions is None or call.body is None or call.body_protocol != call.protocol:
        return None
    violations = versions.check(call.body, headers.get(versions.header))
    if not violations:
        return None
    text = f"{'.'.join(map(str, violations[0].path))}: Extra inputs are not permitted"
    failure = Failure(kind=FailureKind.INVALID_REQUEST, status=400, message=text)
    status, given, body = encode_error(failure, protocol=call.protocol, transport=call.transport)
    return Answer(status=status, headers=given, body=body, refusal=violations[0].code)
