"""Memory that the keys share: whoever fills it loses its own entries, not those of others."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Final, Generic, TypeVar, final

from segue.requests.binding.digests import DigestCache

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_MEGA: Final = 1024 * 1024
_DIGESTS: Final = 64 * _MEGA
_DIGESTS_OF_ONE: Final = 16 * _MEGA


class SharedCache(Generic[K, V]):
    """Entries of tenants, `most` in all. One more drops the oldest of the tenant that has the most of them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._entries: dict[K, tuple[str, V]] = {}
        self._used: dict[str, OrderedDict[K, None]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __bool__(self) -> bool:
        return bool(self._entries)

    def __contains__(self, key: K) -> bool:
        return key in self._entries

    def count_of(self, tenant: str) -> int:
        """Return how many entries a tenant has."""
        return len(self._used.get(tenant, ()))

    def get(self, key: K) -> V | None:
        """Return an entry."""
        found = self._entries.get(key)
        return None if found is None else found[1]

    def owner_of(self, key: K) -> str | None:
        """Return the tenant of an entry."""
        found = self._entries.get(key)
        return None if found is None else found[0]

    def items(self) -> Iterator[tuple[K, str, V]]:
        """Yield the keys, tenants and values of all entries."""
        for key, (tenant, value) in list(self._entries.items()):
            yield key, tenant, value

    def put(self, tenant: str, key: K, value: V) -> None:
        """Add or replace an entry; it is the newest of its tenant then."""
        entries = self._entries
        used = self._used.get(tenant)
        if key in entries:
            if entries[key][0] == tenant and used is not None:
                entries[key] = tenant, value
                used.move_to_end(key)
                return
            self.drop(key)
        if used is None:
            used = self._used[tenant] = OrderedDict()
        entries[key] = tenant, value
        used[key] = None
        while len(entries) > self._most:
            largest = max(self._used.values(), key=len)
            self.drop(next(iter(largest)))

    def drop(self, key: K) -> None:
        """Remove an entry, if it is there."""
        found = self._entries.pop(key, None)
        if found is not None:
            used = self._used[found[0]]
            del used[key]
            if not used:
                del self._used[found[0]]


@final
class SharedDigests:
    """What was digested of the conversations that clients send again with each request, apart for each tenant."""

    def __init__(self) -> None:
        self._caches: OrderedDict[str, DigestCache] = OrderedDict()

    def of(self, tenant: str) -> DigestCache:
        """Return the cache of a tenant; those that were not used for the longest time make room."""
        cache = self._caches.get(tenant)
        if cache is None:
            cache = self._caches[tenant] = DigestCache(_DIGESTS_OF_ONE)
        self._caches.move_to_end(tenant)
        if len(self._caches) * _DIGESTS_OF_ONE > _DIGESTS:
            while len(self._caches) > 1 and self.held_bytes > _DIGESTS:
                self._caches.popitem(last=False)
        return cache

    @property
    def held_bytes(self) -> int:
        """How much is kept."""
        return sum(cache.held_bytes for cache in list(self._caches.values()))


def find_share(sizes: Iterable[int], most: int) -> int:
    """Return the largest size that each may have, so that all of them together fit: who has less than it keeps all."""
    ordered: Sequence[int] = sorted(sizes)
    left, count = most, len(ordered)
    for size in ordered:
        if size * count >= left:
            return left // count
        left -= size
        count -= 1
    return most
