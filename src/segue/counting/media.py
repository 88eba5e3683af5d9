"""The tokens of images and documents: how families of models count an image of a size, and the pages of a document.

Facts (recorded counts minus the estimate of the texts, 2026-11-15):
- Claude counts width times height by 750 and 10 more; the long edge is scaled to 1568 pixels first.
- GPT-4o counts 85 and 170 for each tile of 512 pixels, scaled to 2048 and the short side to 768; later models count
  patches of 32 pixels, 1.2 each (GPT-4.1 mini and nano 2.46).
- Gemini 2.5 counts 258 for each tile of 768 pixels, Gemini 3 1,120 for each image; Nova Pro 1,826 for each image.
- Mistral counts patches of 28 pixels with one more for each row, Pixtral of 16, Qwen of 28.
- A page of a PDF: Claude 1,600 to 2,670 (text and picture), Gemini 258 or 560, OpenAI up to 970, Nova 2,580.
- Gemini counts 32 tokens for a second of audio and 263 for a second of video. (Google's documentation, read 2026-11-15)
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from math import ceil
from typing import Final, TypeAlias

from segue.conversation.media_types import size_of_image

ImageRule: TypeAlias = Callable[[int, int], int]
"""Computes the tokens of an image of a width and a height."""

_DEFAULT_SIZE: Final = (1092, 1092)
"""Assumed where the size is not known, as for an image by URL: the largest that Claude does not scale down."""
_LONGEST_EDGE_OF_CLAUDE: Final = 1568
_PAGE: Final = re.compile(rb"/Type\s*/Page(?![a-zA-Z])")
_PAGE_COUNT: Final = re.compile(
    rb"/Type\s*/Pages\b.{0,200}?/Count\s+(\d+)|/Count\s+(\d+).{0,200}?/Type\s*/Pages\b", re.DOTALL
)
_BYTES_OF_A_PAGE: Final = 50_000
"""Assumed where the pages of a document cannot be counted, because they are compressed."""


def by_area(pixels: int, more: int) -> ImageRule:
    """Count the area, scaled to the longest edge of Claude."""

    def count(width: int, height: int) -> int:
        scale = min(1.0, _LONGEST_EDGE_OF_CLAUDE / max(width, height))
        return min(1600, round(width * scale * height * scale / pixels)) + more

    return count


def by_patches(*, side: int, factor: float, most: int) -> ImageRule:
    """Count square patches; an image with more than `most` tokens is scaled down."""

    def count(width: int, height: int) -> int:
        return min(round(most * max(factor, 1.0)), round(ceil(width / side) * ceil(height / side) * factor))

    return count


def by_tiles(base: int, tile: int, *, side: int = 512, long_edge: int = 2048, short_edge: int = 768) -> ImageRule:
    """Count tiles after scaling the image to a long and a short edge; 0 means that it is not scaled."""

    def count(width: int, height: int) -> int:
        scale = min(1.0, long_edge / max(width, height)) if long_edge else 1.0
        if short_edge:
            scale = min(scale, short_edge / min(width, height))
        return base + tile * ceil(width * scale / side) * ceil(height * scale / side)

    return count


def constant(tokens: int) -> ImageRule:
    """Count every image alike."""

    def count(width: int, height: int) -> int:
        del width, height
        return tokens

    return count


def image_size(data: str) -> tuple[int, int]:
    """Read width and height of an image in base64; a default size if they cannot be found."""
    found = size_of_image(data)
    return found if found is not None and all(0 < edge <= 100_000 for edge in found) else _DEFAULT_SIZE


def default_size() -> tuple[int, int]:
    """Return the size that is assumed for an image by reference."""
    return _DEFAULT_SIZE


def count_pages(data: str) -> int:
    """Count the pages of a PDF in base64, or estimate them from its size."""
    try:
        document = base64.b64decode(data)
    except (binascii.Error, ValueError):
        return 1
    counts = [int(first or second) for first, second in _PAGE_COUNT.findall(document)]
    pages = max(counts, default=0) or len(_PAGE.findall(document))
    return min(pages or ceil(len(document) / _BYTES_OF_A_PAGE), 10_000) or 1
