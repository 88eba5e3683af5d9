"""The version of the API that a request names in a header: an emulated provider refuses what that version refuses."""

from __future__ import annotations

from collections.abc import Mapping

from segue.calls.reading import Call
from segue.failures.failure import Failure, FailureKind
from segue.protocols.registry import get_protocol
from segue.testing.emulator.answering import EmulatedAnswer, refuse
from segue.testing.emulator.refusals import Refusal, refuse_headers


def refuse_by_version(call: Call, headers: Mapping[str, str], surface: str) -> EmulatedAnswer | None:
    """Return the refusal of a request without a version, or whose body its version does not accept; None if accepted.

    At Vertex and Bedrock the body has the version.
    """
    missing = None if surface == "vertex" or call.transport is not None else refuse_headers(call, headers)
    if missing is not None:
        return refuse(call, missing)
    versions = get_protocol(call.protocol).versions
    if versions is None or call.body is None or call.body_protocol != call.protocol:
        return None
    violations = versions.check(call.body, headers.get(versions.header))
    if not violations:
        return None
    text = f"{'.'.join(map(str, violations[0].path))}: Extra inputs are not permitted"
    failure = Failure(kind=FailureKind.INVALID_REQUEST, status=400, message=text)
    rule = f"{versions.header} of the protocol {call.protocol} ({violations[0].message})"
    return refuse(call, Refusal(failure, violations[0].code, rule=rule))
