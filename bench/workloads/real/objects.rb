# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
# Counts, groups and rewrites the words of a text, with objects that the collector takes back.
Entry = Struct.new(:word, :lines, :length)

entries = {}
sentences = []
File.foreach(ARGV[0]).with_index do |line, number|
  words = line.split
  words.each do |word|
    entry = (entries[word] ||= Entry.new(word, [], word.length))
    entry.lines << number
  end
  sentences << words.map(&:capitalize).reverse.join('-')
end
groups = entries.values.group_by(&:length)
total = groups.sum { |length, group| length * group.sum { |entry| entry.lines.size } }
3.times do |round|
  sentences = sentences.map { |sentence| sentence.gsub(/[aeiou]/) { |vowel| vowel.succ } + round.to_s }
end
puts total + sentences.sort.sum(&:length)
