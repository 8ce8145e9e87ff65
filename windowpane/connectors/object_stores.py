"""Files of object stores, S3, Google's and Azure's, by pyarrow's file systems.

Credentials are those of the environment of each process, or stand in the address, ``s3://key:secret@bucket/path?region=...``. A
place is shown as store, bucket and path alone, so no plan, log or error has a secret. A file is written at once when it is whole:
a task that is killed leaves nothing, and one that runs again writes over its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from urllib.parse import parse_qsl, urlsplit

import pyarrow as pa
from pyarrow import fs

from windowpane.errors import UnreachablePathError

SCHEMES = ("s3", "gs", "abfs", "abfss")
_PATTERN = re.compile(r"[*\[]")
_HIDDEN = (".", "_")  # What names begin with that readers pass over


def is_remote(path: str) -> bool:
    """Whether a path is an address of an object store, not of this machine or of a file system of Spark's."""
    return path.partition("://")[0] in SCHEMES and "://" in path


def shown(path: str) -> str:
    """Return an address without credentials and options; other paths as they are."""
    if not is_remote(path):
        return path
    scheme, _, address = path.partition("?")[0].partition("://")
    store, slash, rest = address.partition("/")
    if scheme in ("s3", "gs") or ":" in store.partition("@")[0]:  # Azure's container may stand before @, and is no secret
        store = store.rpartition("@")[2]
    return f"{scheme}://{store}{slash}{rest}".rstrip("/")


@dataclass(frozen=True)
class Location:
    """A file, a folder, or a pattern of them: its names may have ``*`` and ``[...]``."""

    uri: str = field(repr=False)

    def __str__(self) -> str:
        return shown(self.uri)

    def __repr__(self) -> str:
        return f"Location({str(self)!r})"

    def __getstate__(self) -> dict[str, str]:
        return {"uri": self.uri}

    @cached_property
    def _opened(self) -> tuple[fs.FileSystem, str]:
        address, _, query = self.uri.partition("?")
        store, _, path = address.partition("://")[2].partition("/")
        with self._named():
            files, bucket = fs.FileSystem.from_uri(f"{address.partition('://')[0]}://{store}?{query}".rstrip("?"))
        return files, f"{bucket}/{path}".rstrip("/")

    @property
    def files(self) -> fs.FileSystem:
        return self._opened[0]

    @property
    def root(self) -> str:
        """The path as the file system knows it: bucket and path."""
        return self._opened[1]

    @contextmanager
    def _named(self, path: str | None = None) -> Iterator[None]:
        """Give errors of the store their name, and that of the place."""
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            reason = self._without_secrets(str(error).splitlines()[0])
            raise UnreachablePathError(str(self) if path is None else self.address(path), reason) from None

    def _without_secrets(self, text: str) -> str:
        parts = urlsplit(self.uri)
        for secret in (self.uri, parts.password, *(value for _, value in parse_qsl(parts.query))):
            text = text.replace(secret, "...") if secret else text
        return text.rstrip(".")

    def check(self) -> None:
        """Refuse a place whose bucket is not there, or that does not answer.

        Raises:
            UnreachablePathError: which.
        """
        with self._named():
            bucket = self.root.partition("/")[0]
            is_there = self.files.get_file_info(bucket).type != fs.FileType.NotFound
        if not is_there:
            raise UnreachablePathError(str(self), f"there is no bucket {bucket!r}, or these credentials do not see it")

    def paths(self, may_be_empty: bool = False) -> list[str]:
        """Return the files that a folder, a pattern or a file has, as bucket and path, in their order.

        Raises:
            UnreachablePathError: there is nothing in that place, and it may not be empty.
        """
        begin = _PATTERN.split(self.root)[0]
        base = self.root if begin == self.root else begin.rpartition("/")[0]
        with self._named():
            info = self.files.get_file_info(base)
            if info.type == fs.FileType.File:
                return [base]
            found = self.files.get_file_info(fs.FileSelector(base, recursive=True, allow_not_found=True))
        names = sorted(each.path for each in found if each.type == fs.FileType.File)
        if not names and not may_be_empty:
            self.check()
            raise UnreachablePathError(str(self), "there is nothing")
        return [each for each in names if not _is_hidden(each[len(base) :]) and (base == self.root or self._matches(each))]

    def _matches(self, path: str) -> bool:
        """Whether a file is of the pattern, or below a folder that is."""
        wanted, parts = self.root.split("/"), path.split("/")
        return len(parts) >= len(wanted) and all(map(fnmatchcase, parts, wanted))

    @property
    def _store(self) -> str:
        """The address of the bucket, without credentials."""
        return str(self)[: len(str(self)) - len(self.root.partition("/")[2])].rstrip("/")

    def address(self, path: str) -> str:
        """Return the address of a bucket and path of this store, without credentials."""
        return f"{self._store}/{path.partition('/')[2]}"

    def path(self, address: str) -> str:
        """Return the bucket and path of such an address."""
        return f"{self.root.partition('/')[0]}{address[len(self._store) :]}"

    def read(self, path: str) -> pa.Buffer:
        """Return the content of a file by its bucket and path."""
        with self._named(path), self.files.open_input_file(path) as file:
            return file.read_buffer()

    def line(self, name: str) -> str | None:
        """Return what a small file in the folder says, ``None`` where it is not there."""
        path = f"{self.root}/{name}"
        with self._named():
            if self.files.get_file_info(path).type != fs.FileType.File:
                return None
        return bytes(self.read(path).to_pybytes()).decode()

    def write(self, name: str, content: bytes | pa.Buffer) -> None:
        """Write a file in the folder, or over it."""
        with self._named(), self.files.open_output_stream(f"{self.root}/{name}") as out:
            out.write(content)

    def names(self, folder: str) -> list[str]:
        """Return the names of files in a folder of this one, none where it is not there."""
        with self._named():
            found = self.files.get_file_info(fs.FileSelector(f"{self.root}/{folder}".rstrip("/"), allow_not_found=True))
        return [each.base_name for each in found]

    def remove(self, paths: Sequence[str]) -> None:
        """Delete files in the folder."""
        with self._named():
            for path in paths:
                self.files.delete_file(f"{self.root}/{path}")

    def take(self, place: str, name: str) -> None:
        """Write a file or folder of this machine into this folder."""
        local, target = fs.LocalFileSystem(), f"{self.root}/{name}"
        with self._named():
            if local.get_file_info(place).type == fs.FileType.File:
                self.write(name, local.open_input_file(place).read_buffer())
            else:
                fs.copy_files(place, target, local, self.files)

    def give(self, folder: str) -> None:
        """Write this folder to one of this machine."""
        with self._named():
            fs.copy_files(self.root, folder, self.files, fs.LocalFileSystem())


def _is_hidden(path: str) -> bool:
    return any(part.startswith(_HIDDEN) for part in path.split("/"))
