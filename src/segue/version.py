"""Which segue this is; the build reads the version here."""

__version__ = "0.1.0"
DISTRIBUTION = "segue-llm"
"""The name on package indexes, where `segue` is taken; the import and the command are `segue`. Texts of the program
take it from here, and a test compares it with pyproject.toml, the documents and the adapters."""


def install_line(extra: str) -> str:
    """Return the command that installs segue with an extra."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"
