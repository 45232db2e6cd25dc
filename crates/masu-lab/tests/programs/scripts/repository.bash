# Makes a repository of $1 commits, clones it, collects garbage, and prints what is in it.
set -euo pipefail
export GIT_AUTHOR_DATE='1600000000 +0000' GIT_COMMITTER_DATE='1600000000 +0000'

git init -q -b main origin
cd origin
{
    for ((n = 1; n <= $1; n++)); do
        printf 'commit refs/heads/main\ncommitter C <c@example.org> %d +0000\n' $((1600000000 + n))
        printf 'data <<END\nCommit %d\nEND\n' "$n"
        for file in a b c; do
            printf 'M 644 inline folder-%d/%s\ndata <<END\n' $((n % 17)) "$file"
            sed -n "$((n)),$((n + 200))p" ../corpus
            printf 'END\n'
        done
    done
} | git fast-import --quiet
git reset -q --hard main
for n in 1 2 3 4 5; do
    git checkout -q -b "topic-$n" "main~$((n * 10))"
    echo "topic $n" >"topic-$n"
    git add "topic-$n"
    git commit -q -m "Topic $n"
done
git checkout -q main
git merge -q --no-edit topic-1 topic-2 topic-3
git blame -s folder-3/a | tail -n 3
cd ..

git clone -q --no-local origin clone
cd clone
git gc -q --aggressive --prune=now
git repack -q -a -d -f --threads=4 --depth=30 --window=30
git fsck --full --strict
git log --stat --format='%H %s' -n 40
git diff --word-diff=porcelain main~20 | tail -n 50
git grep -n 'arena cache' | tail -n 20
objects() { git -C "$1" cat-file --batch-all-objects --batch-check | sort; }
git -C ../origin prune --expire=now
objects .
[[ $(objects . | wc -l) -le $(objects ../origin | wc -l) ]] && echo "objects match"
