<?php
// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
// Parses records, groups and serializes them; every array and string is counted by references.
$records = array_map(fn($line) => json_decode($line, true), file($argv[1], FILE_IGNORE_NEW_LINES));
$total = 0;
for ($round = 0; $round < 3; ++$round) {
    $groups = [];
    foreach ($records as $record) {
        $record['round'] = "round $round " . strrev($record['name']);
        $groups[$record['place']['city']][] = $record;
    }
    foreach ($groups as $city => $group) {
        usort($group, fn($one, $other) => strcmp($one['round'], $other['round']));
        $total += strlen(serialize($group)) + strlen($city);
    }
}
echo $total, "\n";
