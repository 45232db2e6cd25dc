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
# each), MASU (masu).
# The exit code is that of `masu compare`: 0 passed, 1 surely slower, 2 not judged.
set -euo pipefail

if [[ $# -ne 5 ]]; then
    echo "compare-commits.sh: 5 arguments are needed (BASE HEAD BUILD RUN PAGE), $# were given" >&2
    exit 2
fi
declare -A commits=([base]=$1 [head]=$2)
build=$3 run=$4 page=$(realpath -m -- "$5") runs=$(realpath -m -- "$5").jsonl
masu=${MASU:-masu}
trees=$(mktemp -d)
remove() {
    for name in base head; do
        git worktree remove --force "$trees/$name" 2>/dev/null || true
    done
    rm -rf -- "$trees"
}
trap remove EXIT

for name in base head; do
    commit=${commits[$name]}
    if ! git worktree add --quiet --detach "$trees/$name" "$commit"; then
        echo "compare-commits.sh: there is no commit $commit here; on GitHub, check out with fetch-depth: 0" >&2
        exit 2
    fi
    echo "building $name, $(git -C "$trees/$name" log -1 --format='%h %s')" >&2
    if ! (cd "$trees/$name" && bash -euo pipefail -c "$build") >&2; then
        echo "compare-commits.sh: the build of $name failed: $build" >&2
        exit 2
    fi
done

extent=(--budget "${BUDGET:-5m}")
if [[ -n ${RUNS:-} ]]; then extent=(--runs "$RUNS"); fi
# The words of RUN, with quotes as in a shell; nothing in them is a command of this script.
mapfile -d '' -t words < <(xargs printf '%s\0' <<<"$run")
code=0
rm -f -- "$runs"
# From a folder above both trees, so that the rows are named by what differs.
(cd "$trees" && "$masu" compare --parameter tree=./base,./head --primary "${MEASURE:-cpu}" \
    --fail-if-slower "${FAIL_IF_SLOWER:-3}" "${extent[@]}" --json "$runs" \
    -- "${words[@]}") >&2 || code=$?
if [[ -s $runs ]]; then
    "$masu" report "$runs" --format markdown >"$page"
fi
exit "$code"
