"""Builds the package, as pip asks for it (PEP 517), with nothing but the standard library:
otherwise pip has to fetch a builder first. The same files always give the same bytes."""

import base64
import gzip
import hashlib
import io
import tarfile
import tomllib
import zipfile
from pathlib import Path

HERE = Path(__file__).parent
PROJECT = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
NAME = f"{PROJECT['name'].replace('-', '_')}-{PROJECT['version']}"
METADATA = f"""Metadata-Version: 2.4
Name: {PROJECT['name']}
Version: {PROJECT['version']}
Summary: {PROJECT['description']}
License-Expression: {PROJECT['license']}
Requires-Python: {PROJECT['requires-python']}
Description-Content-Type: text/markdown

{(HERE / PROJECT['readme']).read_text()}"""
LICENSE = sorted(HERE.glob("LICENSE"))
MODULES = sorted((HERE / "src").glob("*/*.py")) + sorted((HERE / "src").glob("*/py.typed"))


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    about = f"{NAME}.dist-info"
    files = {file.relative_to(HERE / "src").as_posix(): file.read_bytes() for file in MODULES}
    files |= {f"{about}/licenses/LICENSE": file.read_bytes() for file in LICENSE}
    files[f"{about}/METADATA"] = METADATA.encode()
    files[f"{about}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: gerbang\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = "".join(f"{name},sha256={digest(content)},{len(content)}\n" for name, content in files.items())
    files[f"{about}/RECORD"] = f"{record}{about}/RECORD,,\n".encode()
    wheel = f"{NAME}-py3-none-any.whl"
    with zipfile.ZipFile(Path(wheel_directory) / wheel, "w") as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)
    return wheel


def build_sdist(sdist_directory, config_settings=None):
    files = {file.relative_to(HERE).as_posix(): file.read_bytes() for file in MODULES + LICENSE}
    files |= {name: (HERE / name).read_bytes() for name in ("README.md", "backend.py", "pyproject.toml")}
    files["PKG-INFO"] = METADATA.encode()
    sdist = f"{NAME}.tar.gz"
    with open(Path(sdist_directory) / sdist, "wb") as out, gzip.GzipFile("", "wb", fileobj=out, mtime=0) as packed:
        with tarfile.open(mode="w", fileobj=packed) as archive:
            for name, content in files.items():
                entry = tarfile.TarInfo(f"{NAME}/{name}")
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
    return sdist


def digest(content):
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
