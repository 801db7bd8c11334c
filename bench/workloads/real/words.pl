# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
# Counts words, indexes the lines on which they stand and joins them again.
use strict;
use warnings;

my (%count, %lines, @sentences);
while (my $line = <>) {
    my @words = split ' ', $line;
    for my $word (@words) {
        $count{$word}++;
        push @{ $lines{$word} }, $.;
    }
    push @sentences, join '-', reverse @words;
}
my $length = 0;
for my $word (sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count) {
    $length += length join ',', @{ $lines{$word} };
}
$length += length for map { ucfirst } sort @sentences;
print "$length\n";
