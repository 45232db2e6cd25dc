<?php
// Arrays of arrays and strings.
$cities = [];
foreach (file('orders.tsv') as $line) {
    [$number, $customer, $city, $price, $note] = explode("\t", rtrim($line));
    $cities[$city][] = ['customer' => $customer, 'price' => (float) $price, 'words' => explode(' ', $note)];
}
$sums = array_map(fn ($list) => array_sum(array_map(fn ($one) => $one['price'] * count($one['words']), $list)), $cities);
arsort($sums);
echo round(array_sum($sums), 2), ' ', strlen(json_encode($cities)), "\n";
