" Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
" Edits a text: substitutions, sorting, joining, undoing.
set undolevels=100
%s/\<\(ba\|lan\)\(\a*\)\>/\2-\1/ge
sort u
g/^t/move 0
%s/\(\a\+\) \(\a\+\)$/\2 \1/e
undo
let words = {}
for line in getline(1, '$')
  for word in split(line)
    let words[word] = get(words, word, 0) + 1
  endfor
endfor
call setline(1, map(sort(keys(words)), 'v:val . " " . words[v:val]'))
qall!
