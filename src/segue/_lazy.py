"""Public names that are imported on first use, from the list in a package's stub.

A package such as `segue` lists its public names once, in `__init__.pyi`. Type checkers and editors read that file. At
run time this module reads it, when the first name is needed. A line of the list is

    from segue.conversation.context import Context as Context

and `from segue import errors as errors` names a submodule. `__all__` in the stub is what `import *` and tab completion
show; every other name of the list can be imported as well.

Facts:
- A name imported as itself (`as`) is public for type checkers.            (typing specification, "Stub files")
- `from package import *` asks the package's `__getattr__` for `__all__`.  (tests/test_public_face.py)
- A loader reads files that lie next to a module, also in a zip file.        (PEP 302, `get_data`)
"""

# Type checkers know this name. Importing `typing` would take longer than the rest of `import segue`; `__future__` is
# one more file, so two annotations below are quoted.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable


def read_stub(text: str) -> tuple[dict[str, str], list[str]]:
    """Return the module of each name that a stub lists, and the names of its `__all__` in their order."""
    modules: dict[str, str] = {}
    imports, _, listed = f"\n{text}".partition("\n__all__ =")
    for line in imports.split("\nfrom ")[1:]:
        module, _, name = line.split(" ", 3)[:3]
        modules[name] = module
    return modules, listed.split('"')[1::2]


def attach(
    package: str, folder: str, get_data: "Callable[[str], bytes]", namespace: dict[str, object]
) -> "tuple[Callable[[str], object], Callable[[], list[str]]]":
    """Make `__getattr__` and `__dir__` of a package whose public names are in its stub.

    `get_data` is the function of the package's loader that reads a file. A name that was found is kept in `namespace`,
    the globals of the package, and is not looked up again.
    """
    modules: dict[str, str] = {}

    def read() -> list[str]:
        if not modules:
            found, namespace["__all__"] = read_stub(get_data(f"{folder}/__init__.pyi").decode())
            modules.update(found)
        return namespace["__all__"]  # pyright: ignore[reportReturnType]

    def load(name: str) -> object:
        all_names = read()
        if name == "__all__":
            return all_names
        module = modules.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        from importlib import import_module

        if module == package:
            return import_module(f"{package}.{name}")
        value = namespace[name] = getattr(import_module(module), name)
        return value

    def list_names() -> list[str]:
        all_names = read()
        return [*all_names, *(name for name, module in modules.items() if module == package)]

    return load, list_names
