#!/usr/bin/env bash
# Builds a program at two commits and compares them with `masu compare`.
#
#   compare-commits.sh BASE HEAD BUILD RUN PAGE
#
# BASE, HEAD  commits of the repository in the current folder
# BUILD       shell command that builds the program, run in the folder of each commit
# RUN         what is measured: a program and its arguments, as a shell splits them; {tree} stands
#             for the folder of the commit
# PAGE        file for the page, in Markdown; beside it PAGE.jsonl has every run, for `masu report`
#
# From the environment: FAIL_IF_SLOWER (per cent, 3), MEASURE (cpu), BUDGET (5m), RUNS (in its place: so many of
# each), MASU (masu). MEASURE=instructions has valgrind count instructions of two runs each: no other load changes them, and
# they say nothing of waiting, caches and the kernel.
# The exit code is that of `masu compare`: 0 passed, 1 surely slower, 2 not judged.
set -euo pipefail

refuse() {
    echo "compare-commits.sh: $1" >&2
    exit 2
}

if [[ $# -ne 5 ]]; then
    refuse "5 arguments are needed (BASE HEAD BUILD RUN PAGE), $# were given"
fi
declare -A commits=([base]=$1 [head]=$2)
build=$3 run=$4 page=$(realpath -m -- "$5") runs=$(realpath -m -- "$5").jsonl
masu=${MASU:-masu} measure=${MEASURE:-cpu} limit=${FAIL_IF_SLOWER:-3}
trees=$(mktemp -d)
remove() {
    for name in base head; do
        git worktree remove --force "$trees/$name" 2>/dev/null || true
    done
    rm -rf -- "$trees"
}
trap remove EXIT

# Builds take long, so what can be wrong with the words is said before them.
git rev-parse --git-dir >/dev/null 2>&1 || refuse "$PWD is no git repository; start this in a checkout"
for name in base head; do
    commit=${commits[$name]}
    if [[ -z $commit || $commit =~ ^0{40} ]]; then
        refuse "there is no $name commit: what started this names none, as a new branch does; name one, on GitHub as the input \`$name\`"
    fi
    commits[$name]=$(git rev-parse --verify --quiet --end-of-options "$commit^{commit}") ||
        refuse "there is no commit $commit here; check its spelling; on GitHub, check out with fetch-depth: 0"
done
# The words of RUN, with quotes as in a shell; nothing in them is a command of this script.
xargs printf '%s\0' <<<"$run" >"$trees/words" || refuse "cannot split the program into words: $run"
mapfile -d '' -t words <"$trees/words"
[[ $run == *"{tree}"* ]] ||
    refuse "the program is the same for both commits: write {tree} where the folder of the commit belongs, not \`$run\`"
[[ $limit =~ ^[0-9]+(\.[0-9]+)?$ ]] || refuse "FAIL_IF_SLOWER is a number of per cent such as 3 or 1.5, not $limit"
[[ -d $(dirname -- "$page") ]] || refuse "there is no folder for the page $page; make it first"
if [[ $measure == instructions ]]; then
    command -v valgrind >/dev/null || refuse "MEASURE=instructions needs valgrind; install it"
else
    found=$(command -v -- "$masu") || refuse "there is no program $masu; build masu, and set MASU to it"
    masu=$(realpath -s -- "$found")
fi

for name in base head; do
    git worktree add --quiet --detach "$trees/$name" "${commits[$name]}" || refuse "git cannot check out $name"
    echo "building $name, $(git -C "$trees/$name" log -1 --format='%h %s')" >&2
    if ! (cd "$trees/$name" && bash -euo pipefail -c "$build") >&2; then
        refuse "the build of $name failed: $build"
    fi
done

# The instructions of all processes of a run in a tree.
count() {
    local log=$trees/counted
    mkdir "$log"
    if ! (cd "$trees" && valgrind --tool=cachegrind --cache-sim=no --cachegrind-out-file=/dev/null --trace-children=yes \
        --log-file="$log/%p" -- "${words[@]//\{tree\}/./$1}" >"$trees/output" 2>&1 </dev/null); then
        tail -n 5 "$trees/output" "$log"/* >&2
        refuse "the run in $1 failed under valgrind: $run"
    fi
    cat "$log"/* | tr -d , | awk '/I +refs:/ { sum += $NF } END { printf "%.0f\n", sum }'
    rm -r -- "$log"
}

# The gate on instructions: 1 where the least count of head is over the limit, seen from the largest of base.
judge_instructions() {
    local base head
    base=$(count base && count base) || exit
    head=$(count head && count head) || exit
    awk -v base="$base" -v head="$head" -v limit="$limit" 'BEGIN {
        split(base, b, "\n"); split(head, h, "\n")
        if (b[1] < 1 || h[1] < 1) { print "valgrind counted nothing"; exit 2 }
        most = b[1] > b[2] ? b[1] : b[2]; least = h[1] < h[2] ? h[1] : h[2]
        is_slower = least / most > 1 + limit / 100
        print "| commit | instructions | once more |\n| --- | ---: | ---: |"
        printf "| base | %.0f | %.0f |\n| head | %.0f | %.0f |\n\n", b[1], b[2], h[1], h[2]
        printf "head executes %.4f times the instructions of base: %s %s %%.\n", least / most,
            is_slower ? "more than the limit of" : "within the limit of", limit
        exit is_slower
    }' >"$page"
}

extent=(--budget "${BUDGET:-5m}")
if [[ -n ${RUNS:-} ]]; then extent=(--runs "$RUNS"); fi
code=0
if [[ $measure == instructions ]]; then
    judge_instructions || code=$?
    cat -- "$page" >&2
    exit "$code"
fi
rm -f -- "$runs"
# From a folder above both trees, so that the rows are named by what differs.
(cd "$trees" && "$masu" compare --parameter tree=./base,./head --primary "$measure" --fail-if-slower "$limit" \
    "${extent[@]}" --json "$runs" -- "${words[@]}") 2>&1 | tee "$trees/said" >&2 || code=$?
if [[ -s $runs ]]; then
    "$masu" report "$runs" --format markdown >"$page"
    # COUPLING: the words of the gate are those of `judge` in crates/masu-cli/src/compare.rs.
    awk '/^Gate|^masu: the gate/ { gate = 1 } gate { line = line " " $0 } END { if (gate) print "\n" substr(line, 2) }' \
        "$trees/said" >>"$page"
    if grep -q '^Gate: the runs cannot tell' "$trees/said"; then
        offer='`instructions` as the measure is counted, not timed: no noise hides a difference. It takes some 20 times as long.'
        printf '\n%s\n' "$offer" | tee -a "$page" >&2
    fi
fi
exit "$code"
