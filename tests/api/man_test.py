#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""man_test.py BUILD CC: the pages of section 3 are those of the headers.

Each public header has one page. What repeats the header in it (the synopsis, the types, the errors, the reasons of
a drop) stands between marks and must be, to the byte, what is made of the header here; `man_test.py --write` puts it
there. Every function must be described besides, every example compile without a warning, and those that are programs
run. All pages must be free of warnings by mandoc, where there is one.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
INCLUDE = os.path.join(ROOT, "include")
MAN = os.path.join(ROOT, "man")
WARNINGS = ["-std=c17", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"]
# Headers that declare nothing of their own.
WITHOUT_PAGE = {"weir.h"}


def page_of(header):
    return "libweir.3" if header == "base.h" else "weir_%s.3" % header[:-2]


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as f:
        return f.read()


def without_comments(text):
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.S)


# What a header says


def functions_of(header):
    """[(return type, name, [parameter])] in the order of the header."""
    text = re.sub(r"^\s*#.*?(?<!\\)$", "", without_comments(header), flags=re.M | re.S)
    found = []
    for declaration in re.findall(r"\bWEIR_API\b([^;{]*);", text):
        one = " ".join(declaration.replace("WEIR_NODISCARD", " ").split())
        head, parameters = re.fullmatch(r"(.*?\w)\s*\((.*)\)", one).groups()
        kind, star, name = re.fullmatch(r"(.*?)(\s*\**)(\w+)", head).groups()
        found.append((kind.strip() + (" " + star.strip() if star.strip() else ""), name,
                      [p.strip() for p in parameters.split(",")]))
    return found


def types_of(header):
    """Definitions of structs and enums, and typedefs, as they stand there; enums made by macros are left out."""
    found = []
    for match in re.finditer(r"^(?:(?:struct|enum) \w+ \{.*?^\};|typedef [^;]*;)", header, flags=re.M | re.S):
        if "#define" not in match.group(0):
            found.append(match.group(0))
    return found


def map_of(header, macro):
    """The rows of an X macro, each with its arguments and comment."""
    body = re.search(r"#define %s\(X\)(.*?[^\\])\n" % macro, header, flags=re.S).group(1)
    return re.findall(r'X\((\w+), (?:(-?\d+), )?"([^"]*)"\)\s*(?:/\*\s*(.*?)\s*\*/)?', body)


# What of it is in a page


def escaped(line):
    line = line.replace("\\", "\\e")
    return "\\&" + line if line[:1] in (".", "'") else line


def synopsis(header_name, header):
    lines = [".In weir/%s" % header_name]
    for kind, name, parameters in functions_of(header):
        lines.append('.Ft "%s"' % kind if " " in kind else ".Ft " + kind)
        if parameters == ["void"]:
            lines.append(".Fn %s void" % name)
            continue
        lines.append(".Fo " + name)
        lines += ['.Fa "%s"' % p for p in parameters]
        lines.append(".Fc")
    return lines


def types(_, header):
    lines = []
    for one in types_of(header):
        lines += [".Bd -literal"] + [escaped(line) for line in one.split("\n")] + [".Ed"]
    return lines


def errors(_, header):
    lines = [".Bl -tag -width WEIR_ETRUNCATED"]
    for name, number, text, _ in map_of(header, "WEIR_ERR_MAP"):
        lines += [".It Dv WEIR_E%s" % name, "%s: %s" % (number.replace("-", "\\-"), text)]
    return lines + [".El"]


def drops(header_name, header):
    prefix = "WEIR_CLIENT_DROP" if header_name == "client.h" else "WEIR_DROP"
    lines = [".Bl -tag -width inbox_full"]
    for name, _, text, comment in map_of(header, prefix + "_MAP"):
        lines += [".It Dv %s_%s , Ql %s" % (prefix, name, text), comment]
    return lines + [".El"]


PARTS = {"synopsis": synopsis, "types": types, "errors": errors, "drops": drops}
NEEDED = {"libweir.3": {"synopsis", "types", "errors"}, "weir_batch.3": {"synopsis", "types", "drops"},
          "weir_client.3": {"synopsis", "types", "drops"}}


def with_parts(page, header_name, header):
    """The page as it should be, and the parts it has."""
    found = set()

    def part(match):
        found.add(match.group(1))
        made = PARTS[match.group(1)](header_name, header)
        return '.\\" %s: begin\n%s\n.\\" %s: end\n' % (match.group(1), "\n".join(made), match.group(1))
    return re.sub(r'\.\\" (\w+): begin\n(?:.*?\n)??\.\\" \1: end\n', part, page, flags=re.S), found


def examples_of(page):
    sections = re.split(r"^\.Sh ", page, flags=re.M)
    examples = "".join(s for s in sections if s.startswith("EXAMPLES"))
    return [block.replace("\\e", "\\").replace("\\&", "")
            for block in re.findall(r"^\.Bd -literal[^\n]*\n(.*?)^\.Ed$", examples, flags=re.M | re.S)]


# Checks

failures = []


def check(is_right, what):
    if not is_right:
        failures.append(what)
        print("FAILED: " + what)


def check_functions(pages):
    """Every function in the synopsis of one page, and described in it."""
    places = {}
    for page, text in pages.items():
        for name in re.findall(r"^\.(?:Fo|Fn) (\w+)", text.split(".Sh DESCRIPTION")[0], flags=re.M):
            places.setdefault(name, []).append(page)
    declared = set()
    for header in sorted(os.listdir(os.path.join(INCLUDE, "weir"))):
        for _, name, _ in functions_of(read(INCLUDE, "weir", header)):
            declared.add(name)
            check(len(places.get(name, [])) == 1, "%s of %s is in the pages %s" % (name, header, places.get(name, [])))
            described = pages.get(page_of(header), "").split(".Sh DESCRIPTION")[-1].split(".Sh EXAMPLES")[0]
            check(re.search(r"^\.Fn %s\b" % name, described, flags=re.M), "%s is not described in %s" % (name, page_of(header)))
    exported = set((read(ROOT, "tools", "weir.symbols") + read(ROOT, "tools", "weir-client.symbols")).split())
    check(declared == exported, "the headers and tools/*.symbols differ: %s" % sorted(declared ^ exported))
    check(set(places) <= declared, "no header has %s" % sorted(set(places) - declared))
    return len(declared)


def check_examples(pages, build, compiler):
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        for page, text in sorted(pages.items()):
            examples = examples_of(text)
            check(examples, "%s has no example" % page)
            for i, example in enumerate(examples):
                source = os.path.join(folder, "%s.%d.c" % (page, i))
                with open(source, "w", encoding="utf-8") as f:
                    f.write(example)
                program = source[:-2]
                is_program = re.search(r"^int main\(", example, flags=re.M)
                command = [compiler, *WARNINGS, "-I", INCLUDE, source, "-o", program]
                archives = [os.path.join(build, "src", "libweir.a"), "-lm", "-pthread"]
                if page == "weir_client.3":
                    archives = [os.path.join(build, "client", "libweir-client.a"), "-lcurl"] + archives
                command += archives if is_program else ["-c"]
                done = subprocess.run(command, capture_output=True, text=True, timeout=60)
                check(done.returncode == 0, "example %d of %s: %s" % (i + 1, page, done.stderr))
                if is_program and done.returncode == 0:
                    ran = subprocess.run([program], capture_output=True, text=True, timeout=20)
                    check(ran.returncode == 0, "example %d of %s gave %d: %s" % (i + 1, page, ran.returncode, ran.stderr))
                    wanted = re.search(r"/\* prints: (.*?) \*/", example, flags=re.S)
                    if wanted:
                        check(ran.stdout.split() == wanted.group(1).split(),
                              "example %d of %s printed %r" % (i + 1, page, ran.stdout))
                count += 1
    return count


def check_lint():
    if not shutil.which("mandoc"):
        print("no mandoc: the pages were not checked by it")
        return
    pages = sorted(os.path.join(MAN, p) for p in os.listdir(MAN))
    done = subprocess.run(["mandoc", "-Tlint", "-W", "warning"] + pages, capture_output=True, text=True, timeout=60)
    check(done.returncode == 0 and not done.stdout, "mandoc: " + done.stdout)


def check_references():
    """What a page refers to by .Xr is there."""
    there = set(os.listdir(MAN))
    for page in sorted(there):
        for name, section in re.findall(r"^\.Xr (\S+) (\d)", read(MAN, page), flags=re.M):
            if name.startswith(("weir", "libweir")):
                check("%s.%s" % (name, section) in there, "%s refers to %s(%s)" % (page, name, section))


def check_options(program):
    """The verbs that weir lists, and the options that a verb's --help lists, are those of the pages."""
    done = subprocess.run([program, "help"], capture_output=True, text=True, timeout=20)
    verbs = set(re.findall(r"^  (\w+) ", done.stdout, flags=re.M))
    described = set(re.findall(r"^\.It Cm (\w+)$", read(MAN, "weir.1"), flags=re.M))
    check(verbs and verbs == described, "weir help and weir.1 differ: %s" % sorted(verbs ^ described))
    for verb in ("query", "inspect", "send"):
        page = "weir-%s.1" % verb
        done = subprocess.run([program, verb, "--help"], capture_output=True, text=True, timeout=20)
        listed = {o for o in re.findall(r"(?<![\w-])--([a-z0-9.-]+)", done.stdout, flags=re.I) if not o.startswith("aggregation.")}
        text = read(MAN, page)
        named = {o for o in re.findall(r"\bFl -([a-z0-9.-]+)", text) if not o.startswith("aggregation.")}
        listed_first = set(re.findall(r"^\.(?:Op Fl|It Fl) -([a-z0-9.-]+)", text, flags=re.M))
        check(done.returncode == 0 and listed, "weir %s --help gave %d" % (verb, done.returncode))
        check(listed <= named, "%s lacks %s" % (page, sorted(listed - named)))
        check({o for o in listed_first if not o.startswith("aggregation.")} <= listed,
              "weir %s --help lacks %s" % (verb, sorted(listed_first - listed)))


def main():
    write = sys.argv[1:] == ["--write"]
    pages = {}
    for header in sorted(os.listdir(os.path.join(INCLUDE, "weir"))):
        if header in WITHOUT_PAGE:
            continue
        page = page_of(header)
        path = os.path.join(MAN, page)
        check(os.path.exists(path), "%s has no page %s" % (header, page))
        if not os.path.exists(path):
            continue
        text = read(path)
        wanted, parts = with_parts(text, header, read(INCLUDE, "weir", header))
        check(parts == NEEDED.get(page, {"synopsis", "types"}), "%s has the parts %s" % (page, sorted(parts)))
        if write and wanted != text:
            with open(path, "w", encoding="utf-8") as f:
                f.write(wanted)
        check(write or wanted == text, "%s is not as %s is: tests/api/man_test.py --write" % (page, header))
        pages[page] = wanted
    if write:
        return
    functions = check_functions(pages)
    check_references()
    check_lint()
    build, compiler = sys.argv[1:]
    examples = check_examples(pages, build, compiler)
    program = os.path.join(build, "weir")
    if os.path.exists(program):
        check_options(program)
    if failures:
        sys.exit(1)
    print("%d functions in %d pages, %d examples" % (functions, len(pages), examples))


if __name__ == "__main__":
    main()
