# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""The files that belong to the project, for the checks beside this module."""

import argparse
import os
import subprocess
from pathlib import Path

NOT_SOURCES = {".git", "build", "__pycache__"}


def files(root: Path) -> list[Path]:
    """Every file of the project below root, sorted, relative to it; what git ignores is no part."""
    if (root / ".git").exists():
        listing = subprocess.run(
            ["git", "-C", str(root), "ls-files", "-z", "-co", "--exclude-standard"],
            capture_output=True,
            check=False,
        )
        if listing.returncode == 0:
            names = listing.stdout.decode().split("\0")
            return sorted(Path(name) for name in set(names) if name and (root / name).is_file())
    return sorted(_walk(root))


def _walk(root: Path):
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = [name for name in subfolders if name not in NOT_SOURCES]
        for name in names:
            yield (Path(folder) / name).relative_to(root)


def run_check(check, description: str) -> int:
    """Runs check(root), which returns a list of complaints; prints them; returns the exit status."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    complaints = check(parser.parse_args().root)
    for complaint in complaints:
        print(complaint)
    if complaints:
        print(f"{len(complaints)} complaint(s)")
    return 1 if complaints else 0
