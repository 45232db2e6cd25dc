# Counts words, joins columns and sorts them: what awk is used for.
BEGIN { FS = "\t" }
{
    total[$2] += $4; count[$3 "," length($5)]++
    n = split($5, words, " ")
    for (i = 1; i <= n; i++) seen[words[i]] = seen[words[i]] + $4
    line = toupper($2) "-" $1; if (line ~ /BA.*9$/) found[line] = substr($0, 1, 40)
}
END {
    for (name in total) sum += total[name] * length(name)
    for (name in seen) if (seen[name] > best) best = seen[name]
    for (name in found) kept++
    print sum, best, kept, length(count)
}
