# Arrays, functions, expansions, here-documents, subshells, jobs and pipelines.
set -euo pipefail

declare -A squares
for n in {1..3000}; do squares[key-$n]=$((n * n)); done
sum=0
for key in "${!squares[@]}"; do sum=$((sum + squares[$key])); done
echo "sum: $sum"

words=()
while read -r line; do words+=("$line"); done < <(for n in {1..2000}; do printf 'word %05d\n' "$n"; done)
echo "words: ${#words[@]} ${words[1999]^^} ${words[*]:10:3}"

fib() { (($1 < 2)) && echo "$1" || echo $(($(fib $(($1 - 1))) + $(fib $(($1 - 2))))); }
echo "fib: $(fib 8)"

text=
for n in {1..2000}; do text+="line $n of a string that grows; "; done
echo "text: ${#text} ${text//line/LINE}" | tail -c 40

jobs=()
for n in {1..20}; do
    (sleep 0.0$((n % 3)); exit "$n") &
    jobs+=("$!")
done
total=0
for job in "${jobs[@]}"; do
    code=0
    wait "$job" || code=$?
    total=$((total + code))
done
echo "jobs: $total"

count=0
for n in {1..40}; do [[ $(/usr/bin/env printf '%s' "$n") == "$n" ]] && count=$((count + 1)); done
echo "processes: $count"

cat <<END | sort -r | head -n 3
$(printf '%s\n' b a d c)
END
trap 'echo "goodbye from the trap"' EXIT
