"""The admin API: keys made, listed and revoked over HTTP, with the operator's own key.

    GET    /segue/admin/keys          all keys, their limits and what they spent
    POST   /segue/admin/keys          make a key: {"name": "alice", "budgets": {"month": {"dollars": 20}}}
    DELETE /segue/admin/keys/{name}   revoke a key, by its name or id

Without `listen.admin_key` there is no such API. It answers this machine only, unless `listen.admin_remote` is set, and
no page of another origin: not even one on another port of this machine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias, TypeVar
from urllib.parse import urlsplit

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from segue.errors import SettingsError
from segue.gateway.console import json_response
from segue.gateway.gate import TURN
from segue.gateway.guarding import find_digest, is_own_host, is_remote
from segue.gateway.intake import Refused
from segue.gateway.key_lists import describe_key
from segue.gateway.keys import Rights, digest_of, make_key
from segue.gateway.peers import ask_others
from segue.gateway.service import FIRST_KEY, Gateway, now_ms
from segue.gateway.store.database import Database, StoreError
from segue.gateway.store.key_table import put_key, read_spending, revoke_key

_T = TypeVar("_T")
_Answer: TypeAlias = tuple[object, int]
_TENANT: Final = "admin"


class _NewKey(Rights, frozen=True, kw_only=True):
    """The body of a request that makes a key."""

    name: str


def admin_routes(gateway: Gateway) -> list[Route]:
    """Return the routes."""

    async def work(do: Callable[[Database], _T]) -> _T:
        store = gateway.store.store
        if store is None:
            raise SettingsError("this gateway has no store (state.store is none); keys are kept in one", key="store")
        return await gateway.store.fetch(lambda: do(store.database))

    async def list_keys() -> _Answer:
        now = now_ms()
        rows = await work(lambda database: read_spending(database, now))
        return {"keys": [describe_key(row, now) for row in rows]}, 200

    async def create(request: Request) -> _Answer:
        with gateway.intake.admitted(_TENANT, gateway.runtime, turn=request.scope[TURN]) as admission:
            body = await admission.read_body(request.receive, request.headers)
        given = msgspec.json.decode(body, type=_NewKey)
        fields = {name: getattr(given, name) for name in Rights.__struct_fields__}
        secret, key = make_key(given.name, Rights(**fields), now_ms())
        was_open = not gateway.needs_key(gateway.runtime)
        await work(lambda database: put_key(database, key, digest_of(secret)))
        await gateway.load_keys()
        await ask_others(gateway, "load keys")
        notice = {"notice": FIRST_KEY} if was_open else {}
        return {"id": key.id, "name": key.name, "key": secret, **notice}, 201

    async def revoke(request: Request) -> _Answer:
        name = str(request.path_params["name"])
        key = await work(lambda database: revoke_key(database, name, now_ms()))
        await gateway.load_keys()
        await ask_others(gateway, "load keys")
        return {"id": key.id, "name": key.name, "revoked": key.revoked}, 200

    async def keys(request: Request) -> Response:
        if (refused := _refuse(gateway, request)) is not None:
            return refused
        try:
            answer, status = await (list_keys() if request.method in ("GET", "HEAD") else create(request))
        except Exception as error:  # noqa: BLE001 - each kind has its status
            return _explain(error)
        return json_response(answer, status)

    async def one_key(request: Request) -> Response:
        if (refused := _refuse(gateway, request)) is not None:
            return refused
        try:
            answer, status = await revoke(request)
        except Exception as error:  # noqa: BLE001 - each kind has its status
            return _explain(error)
        return json_response(answer, status)

    return [
        Route("/segue/admin/keys", keys, methods=["GET", "POST"]),
        Route("/segue/admin/keys/{name}", one_key, methods=["DELETE"]),
    ]


def _refuse(gateway: Gateway, request: Request) -> Response | None:
    """Refuse a request that is not the operator's."""
    runtime = gateway.runtime
    headers = request.headers
    if not runtime.admin_digests:
        return json_response({"error": "there is no admin API; set listen.admin_key"}, 404)
    origin = headers.get("origin")
    is_foreign = not is_own_host(dict(headers), runtime.host_names) or (
        origin is not None and urlsplit(origin).netloc != headers.get("host")
    )
    is_foreign = is_foreign or headers.get("sec-fetch-site", "none") not in ("none", "same-origin")
    if is_foreign:
        return json_response(
            {"error": "the admin API takes no requests of pages of other origins, or for other hosts"}, 403
        )
    if is_remote(request.scope.get("client")) and not runtime.config.listen.admin_remote:
        return json_response({"error": "the admin API answers this machine only; see listen.admin_remote"}, 403)
    if find_digest(headers, "") not in runtime.admin_digests:
        return json_response({"error": "the key is not that of listen.admin_key"}, 401)
    return None


def _explain(error: Exception) -> Response:
    match error:
        case Refused():
            return json_response({"error": str(error)}, error.status or 429)
        case SettingsError():
            return json_response({"error": str(error)}, 404 if str(error).startswith("there is no key") else 400)
        case msgspec.MsgspecError():
            return json_response({"error": f"the body is no key: {error}"}, 400)
        case StoreError():
            response = json_response({"error": "the database of the gateway does not answer; try again"}, 503)
            response.headers["retry-after"] = "2"
            return response
        case _:
            raise error
