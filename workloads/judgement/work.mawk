# Word frequencies, and lines put together again.
{
    for (i = 1; i <= NF; i++) { word = tolower($i); gsub(/[^a-z]/, "", word); count[word]++; pair[last " " word]++; last = word }
    text = text substr($0, 1, 3); if (length(text) > 4000) { total += length(text); text = "" }
}
END {
    for (word in count) if (count[word] > 40) often++
    for (both in pair) if (pair[both] > 3) together++
    print often, together, total
}
