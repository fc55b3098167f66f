"""The pictures in the documents show the page as it is today."""

from __future__ import annotations

import json

from tools.screenshots import IMAGES, LARGEST, SOURCES, page_hash


def test_the_pictures_were_taken_of_todays_page() -> None:
    """Where this fails: ``python -m tools.screenshots``, look at the pictures, commit them."""
    assert json.loads((IMAGES / SOURCES).read_text("utf-8"))["page_sha256"] == page_hash()


def test_every_picture_is_there_and_small() -> None:
    pictures = json.loads((IMAGES / SOURCES).read_text("utf-8"))["pictures"]
    assert len(pictures) == 5
    assert [name for name in pictures if not 0 < (IMAGES / name).stat().st_size <= LARGEST] == []
