-- Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
-- Builds tables and strings of the words of a text and lets the collector take them back.
local count, sentences = {}, {}
for line in io.lines(arg[1]) do
  local words = {}
  for word in line:gmatch("%a+") do
    local entry = count[word]
    if not entry then
      entry = { word = word, lines = {} }
      count[word] = entry
    end
    entry.lines[#entry.lines + 1] = #sentences
    words[#words + 1] = word:upper()
  end
  sentences[#sentences + 1] = table.concat(words, "-")
end
local total = 0
for round = 1, 6 do
  local changed = {}
  for i, sentence in ipairs(sentences) do
    changed[i] = { text = sentence:gsub("[AEIOU]", round) .. i, next = changed[i - 1] }
  end
  for _, entry in ipairs(changed) do total = total + #entry.text end
end
for _, entry in pairs(count) do total = total + #entry.lines end
print(total)
