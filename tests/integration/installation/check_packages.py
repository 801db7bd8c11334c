#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Makes the Debian packages, installs them by dpkg into a root of their own, and removes them.

A stand-in for Debian's libtcmalloc-minimal4 is installed there as well. The loader's choice is asked
of ldconfig. Skipped where there is no dpkg, and where neither root nor fakeroot is to be had.
"""

import argparse
import os
import pathlib
import re
import shutil
import sys
import tempfile

from processes import check_tool, expect, run, run_checks

SKIPPED = 77
SONAME = "libtcmalloc_minimal.so.4"
PACKAGES = ("tcmalloc", "tcmalloc-dev", "tcmalloc-default")
DEBIAN_VERSION = "2.10-1"


def find_ldconfig():
    return shutil.which("ldconfig", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def missing_tools():
    missing = [name for name in ("dpkg", "dpkg-deb", "dpkg-shlibdeps", "update-alternatives")
               if not shutil.which(name)]
    if not find_ldconfig():
        missing.append("ldconfig")
    if os.geteuid() != 0 and not shutil.which("fakeroot"):
        missing.append("root or fakeroot")
    return missing


def tree(folder):
    """Every file and link below a folder, but for dpkg's own records and logs."""
    names = (path.relative_to(folder) for path in folder.rglob("*")
             if path.is_symlink() or not path.is_dir())
    return sorted(name.as_posix() for name in names if name.parts[0] != "var")


class Root:
    """A folder that dpkg takes for a system."""

    def __init__(self, folder):
        self.folder = folder
        for name in ("var/lib/dpkg/updates", "var/lib/dpkg/info", "var/lib/dpkg/alternatives",
                     "var/lib/dpkg/triggers", "var/log", "etc/alternatives", "etc/ld.so.conf.d"):
            (folder / name).mkdir(parents=True)
        (folder / "var/lib/dpkg/status").touch()

    def dpkg(self, *arguments):
        words = ["dpkg", f"--root={self.folder}", f"--log={self.folder}/var/log/dpkg.log",
                 "--force-script-chrootless", *arguments]
        return run(*([] if os.geteuid() == 0 else ["fakeroot"]), *words)

    def alternatives(self, *arguments):
        return run("update-alternatives", "--root", self.folder, *arguments)

    def resolve(self, path):
        """What a path means for those to whom this folder is the root."""
        path = self.folder / path.lstrip("/")
        while path.is_symlink():
            target = path.readlink()
            path = self.folder / str(target).lstrip("/") if target.is_absolute() else (
                path.parent / target)
        return path

    def library_of_loader(self, system_folder):
        """The library that the loader would take, with our folder in front if the root says so."""
        folders = []
        for entry in sorted((self.folder / "etc/ld.so.conf.d").iterdir()):
            text = self.resolve(entry.relative_to(self.folder).as_posix()).read_text()
            folders += [line for line in text.splitlines() if line and not line.startswith("#")]
        paths = [self.folder / name.lstrip("/") for name in [*folders, system_folder]]
        configuration = self.folder / "var/ld.so.conf"
        configuration.write_text("".join(f"{path}\n" for path in paths))
        cache = self.folder / "var/ld.so.cache"
        run(find_ldconfig(), "-X", "-f", configuration, "-C", cache)
        listed = run(find_ldconfig(), "-p", "-C", cache)
        found = re.search(rf"{SONAME} .*=> (\S+)", listed)
        return found and pathlib.Path(found[1])


class Packages:
    def __init__(self, arguments, work):
        self.arguments = arguments
        self.work = work
        self.root = Root(work / "root")
        self.files = {}
        self.before = None
        triplet = run(arguments.cc, "-print-multiarch").strip()
        self.system_folder = f"/usr/lib/{triplet}" if triplet else "/usr/lib"
        self.prefix = f"{self.system_folder}/tcmalloc"
        self.alternative = None

    def make(self):
        out = self.work / "made"
        run(self.arguments.cpack, "--config", self.arguments.build / "CPackConfig.cmake", "-B", out,
            "-D", "CPACK_DEBIAN_COMPRESSION_TYPE=gzip")
        for path in out.glob("*.deb"):
            self.files[self.field(path, "Package")] = path
        expect(set(self.files) == set(PACKAGES), f"made: {sorted(self.files)}")

    def field(self, path, name):
        return run("dpkg-deb", "-f", path, name).strip()

    def check_fields(self):
        for name, path in self.files.items():
            for absent in ("Conflicts", "Replaces", "Breaks"):
                expect(not self.field(path, absent), f"{name} has {absent}")
        expect("libc6 (>=" in self.field(self.files["tcmalloc"], "Depends"), "no libc6")
        version = self.field(self.files["tcmalloc"], "Version")
        provides = self.field(self.files["tcmalloc-default"], "Provides")
        found = re.search(r"libtcmalloc-minimal4 \(= (2\.[0-9.]+)\)", provides)
        expect(found, provides)
        # An installed program asks for the interface of gperftools, not for our version.
        expect(found[1] in self.field(self.files["tcmalloc"], "Description"), provides)
        for name in PACKAGES[1:]:
            depends = self.field(self.files[name], "Depends")
            expect(depends == f"tcmalloc (= {version})", f"{name} depends on {depends}")

    def check_lintian(self):
        if not shutil.which("lintian"):
            print("lintian is not installed, so the packages are not checked by it")
            return
        packages = {**self.files, "tcmalloc-dev": self._with_one_archive()}
        said = run("lintian", "--allow-root", "--fail-on", "error", *packages.values())
        expect("E: " not in said, said)

    def check_archives(self):
        """What lintian would say of those that it is not shown."""
        archives = sorted(self.root.folder.rglob("*.a"))
        expect(len(archives) > 1, f"archives: {archives}")
        for archive in archives:
            expect(" .debug_" not in run("readelf", "-SW", archive), f"{archive} is not stripped")

    def _with_one_archive(self):
        """A copy of tcmalloc-dev with one of its archives: lintian takes some seconds for each."""
        folder = self.work / "one_archive"
        run("dpkg-deb", "-R", self.files["tcmalloc-dev"], folder)
        sums = folder / "DEBIAN/md5sums"
        left_out = sorted(folder.rglob("*.a"))[1:]
        for archive in left_out:
            archive.unlink()
        names = {archive.relative_to(folder).as_posix() for archive in left_out}
        lines = sums.read_text(encoding="ascii").splitlines(keepends=True)
        sums.write_text("".join(line for line in lines if line.split()[1] not in names),
                        encoding="ascii")
        package = self.work / self.files["tcmalloc-dev"].name
        run("dpkg-deb", "--root-owner-group", "-Zgzip", "-b", folder, package)
        return package

    def check_places(self):
        """Every file lies where no other package of Debian's has one."""
        for name, path in self.files.items():
            allowed = (f".{self.prefix}/", f"./usr/share/doc/{name}/", "./usr/bin/tcm ",
                       "./usr/share/man/man1/tcm", f"./usr/share/lintian/overrides/{name} ",
                       "./usr/share/bash-completion/completions/tcm ",
                       "./usr/share/zsh/vendor-completions/_tcm ",
                       "./usr/share/fish/vendor_completions.d/tcm.fish ",
                       f"./usr/share/gdb/auto-load{self.prefix}/")
            for line in run("dpkg-deb", "-c", path).splitlines():
                mode, place = line[0], line.split(None, 5)[5] + " "
                expect(mode == "d" or place.startswith(allowed), f"{name}: {line}")
                expect("share/tcmalloc/" not in place, f"{name} has a second list: {line}")

    def _pack(self, name, version, depends="", content=None):
        """A package of the system, or a stand-in of one."""
        folder = self.work / "pack" / name
        (folder / "DEBIAN").mkdir(parents=True)
        architecture = self.field(self.files["tcmalloc"], "Architecture")
        (folder / "DEBIAN/control").write_text(
            f"Package: {name}\nVersion: {version}\nArchitecture: {architecture}\n"
            f"Maintainer: nobody <nobody@tcmalloc.invalid>\nDescription: stand-in\n"
            + (f"Depends: {depends}\n" if depends else ""))
        for place, file in (content or {}).items():
            target = folder / place.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target)
        package = self.work / f"{name}.deb"
        run("dpkg-deb", "--root-owner-group", "-b", folder, package)
        return package

    def _debians_library(self):
        library = self.work / "libstand_in.so"
        run(self.arguments.cc, "-shared", f"-Wl,-soname,{SONAME}", "-xc", "-", "-o", library,
            text="int stand_in;\n")
        return library

    def install_system(self):
        content = {f"{self.system_folder}/{SONAME}": self._debians_library()}
        self.root.dpkg("-i", self._pack("libc6", "99"),
                       self._pack("libtcmalloc-minimal4", DEBIAN_VERSION, content=content))
        self.before = tree(self.root.folder)
        self._expect_loader(self.system_folder)

    def _expect_loader(self, folder):
        library = self.root.library_of_loader(self.system_folder)
        wanted = self.root.folder / f"{folder}/{SONAME}".lstrip("/")
        expect(library == wanted, f"the loader takes {library} instead of {wanted}")

    def check_beside(self):
        self.root.dpkg("-i", self.files["tcmalloc"], self.files["tcmalloc-dev"])
        self._expect_loader(self.system_folder)
        library = self.root.folder / f"{self.prefix}/lib/{SONAME}".lstrip("/")
        maps = run(sys.executable, "-c", "print(open('/proc/self/maps').read())", LD_PRELOAD=library)
        expect(str(library.resolve()) in maps, maps)
        documents = self.root.folder / "usr/share/doc/tcmalloc"
        for name in ("README.md", "LICENSE", "docs/tuning.md", "examples/README.md"):
            expect((documents / name).is_file(), f"no {documents / name}")
        tool = self.root.folder / "usr/bin/tcm"
        if not tool.is_symlink():
            print("tcm is not built, so it is not checked: scripts/build_tool.sh")
            return
        check_tool(tool, library.resolve(), self.work / "bench")

    def check_development(self):
        prefix = self.root.folder / self.prefix.lstrip("/")
        program = self.work / "word_index"
        run(prefix / "share/doc/tcmalloc/examples/link/build.sh", PREFIX=prefix,
            CC=self.arguments.cc, OUT=program)
        expect("different words: 2\n" in run(program, text="one two one"), "word_index fails")

    def check_instead(self):
        self.root.dpkg("-i", self.files["tcmalloc-default"])
        self._expect_loader(f"{self.prefix}/lib")
        links = list((self.root.folder / "etc/ld.so.conf.d").iterdir())
        expect(len(links) == 1 and links[0].is_symlink(), f"{links}")
        alternative = pathlib.Path(links[0].readlink()).name
        self.root.alternatives("--set", alternative, f"{self.prefix}/loader/system.conf")
        self._expect_loader(self.system_folder)
        self.root.alternatives("--auto", alternative)
        self._expect_loader(f"{self.prefix}/lib")

    def check_provided(self):
        """A package that needs Debian's is content with ours alone."""
        root = Root(self.work / "root_without")
        needs = self._pack("needs-tcmalloc", "1", depends="libtcmalloc-minimal4 (>= 2.10)")
        root.dpkg("-i", self.work / "libc6.deb", self.files["tcmalloc"],
                  self.files["tcmalloc-default"], needs)
        expect("install ok installed" in root.dpkg("-s", "needs-tcmalloc"), "not installed")

    def check_removal(self):
        self.root.dpkg("-P", "tcmalloc-default")
        self._expect_loader(self.system_folder)
        self.root.dpkg("-P", "tcmalloc-dev", "tcmalloc")
        after = tree(self.root.folder)
        expect(after == self.before, f"left: {set(after) ^ set(self.before)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cpack", default="cpack")
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--cc", default="cc")
    arguments = parser.parse_args()
    missing = missing_tools()
    if missing:
        print(f"missing: {', '.join(missing)}")
        return SKIPPED
    # dpkg looks for the programs of a system administrator.
    os.environ["PATH"] = os.environ.get("PATH", "") + ":/usr/local/sbin:/usr/sbin:/sbin"
    with tempfile.TemporaryDirectory(prefix="tcm_packages_") as folder:
        packages = Packages(arguments, pathlib.Path(folder))
        names = ("make", "check_fields", "check_lintian", "check_places", "install_system", "check_beside",
                 "check_archives", "check_development", "check_instead", "check_provided", "check_removal")
        return run_checks([(name, getattr(packages, name)) for name in names])


if __name__ == "__main__":
    sys.exit(main())
