#!/bin/sh
# lint.sh: every static check there is, one line each; the first that fails ends it. clang-tidy and
# cppcheck remember in build/lint which files have passed as they are, so a second run is short.
# Called by ./dev lint, which has installed the tools and configured build/clang and build/dev.
set -eu
cd "$(dirname "$0")/.."
jobs=${DEV_JOBS:-$(nproc)}
mkdir -p build/lint

sources() { # PATTERN... of files that git knows or would add
    git ls-files -co --exclude-standard "$@" | while read -r file; do
        [ ! -f "$file" ] || echo "$file"
    done
}
step() {
    name=$1
    shift
    "$@" || {
        echo "lint: FAILED: $name" >&2
        exit 1
    }
}

check_format() {
    sources '*.c' '*.h' | xargs clang-format-14 --dry-run -Werror && echo "format: clean"
}

# What a merge or a hurry leaves behind: conflict markers, blanks at line ends, files without a last newline.
check_text() {
    files=$(sources '*.c' '*.h' '*.def' '*.md' '*.sh' '*.py' '*.js' '*.txt' '*.cmake' '*.[1-9]' dev .ci/run)
    # shellcheck disable=SC2086 # a list of words
    if grep -nE '^(<<<<<<< |>>>>>>> |=======$)|[[:blank:]]$' $files; then
        return 1
    fi
    for file in $files; do
        [ -z "$(tail -c 1 "$file")" ] || {
            echo "$file does not end in a newline"
            return 1
        }
    done
    echo "text: clean"
}

# Files whose text, settings and headers are those of a run that passed are not read again.
unchecked() { # TOOL FILE...
    tool=$1
    shift
    headers=$(sources '*.h' '*.def' | xargs cat | cat - .clang-tidy tools/lint.sh cmake/flags.cmake | sha256sum)
    for file in "$@"; do
        key=$(echo "$tool $file $headers" | cat - "$file" | sha256sum | cut -c1-40)
        [ -e "build/lint/$key" ] || echo "$file build/lint/$key"
    done
}

check_tidy() {
    # shellcheck disable=SC2046,SC2016 # a list of words; expanded by the inner shell
    unchecked tidy $(sources 'src/*.c' 'client/*.c' 'agent/*.c') | xargs -r -L 1 -P "$jobs" sh -c '
        grep -q "/$0\"" build/clang/compile_commands.json || exit 0 # not in this build
        out=$(clang-tidy-14 --quiet -p build/clang "$0" 2>/dev/null) || { echo "$out"; exit 1; }
        touch "$1"' && echo "clang-tidy: clean"
}

# ctuPointerArith takes the address one past an array's end for an overflow; internalAstError is a
# parser that gives up on compound literals within ?:; pointerOutOfBoundsCond miscounts src + len - 8.
check_cppcheck() {
    # shellcheck disable=SC2046,SC2016
    unchecked cppcheck $(sources 'src/*.c' 'client/*.c' 'agent/*.c') | xargs -r -L 1 -P "$jobs" sh -c '
        cppcheck --quiet --enable=warning,portability --inline-suppr --error-exitcode=1 --std=c11 \
            --suppress=missingInclude --suppress=ctuPointerArith --suppress=internalAstError \
            --suppress=pointerOutOfBoundsCond --suppress=preprocessorErrorDirective -Iinclude -Isrc -Iagent "$0" || exit 1
        touch "$1"' && echo "cppcheck: clean"
}

check_man() {
    pages=$(sources 'man/*.[1-9]')
    [ -n "$pages" ] || return 0
    # shellcheck disable=SC2086 # a list of words
    mandoc -Tlint -W warning $pages && echo "man pages: clean"
}

check_scripts() {
    # shellcheck disable=SC2046 # a list of words
    shellcheck dev .ci/run $(sources '*.sh') && echo "shell scripts: clean"
}

step layers tools/check-layers.sh
step format check_format
step text check_text
step scripts check_scripts
step "man pages" check_man
step symbols tools/check-symbols.sh
step heap tools/check-heap.sh
step cppcheck check_cppcheck
step clang-tidy check_tidy
