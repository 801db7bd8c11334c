# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
# Counts words and pairs of neighbouring words, and builds a string for each initial letter.
{
    for (i = 1; i <= NF; i++) {
        count[$i]++
        if (i > 1) pairs[$(i - 1) " " $i]++
    }
    initial = substr($1, 1, 1)
    text[initial] = substr(text[initial] toupper($0), 1, 4000)
}
END {
    for (word in count) words++
    for (pair in pairs) if (pairs[pair] > 1) frequent++
    for (initial in text) characters += length(text[initial])
    print words, frequent, characters
}
