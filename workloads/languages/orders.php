<?php
// Orders as JSON: made, parsed, grouped by customer, sorted, written again.
$orders = (int) $argv[1];
$lines = [];
for ($n = 0; $n < $orders; $n++) {
    $items = [];
    for ($k = 0; $k < $n % 6; $k++) {
        $items[] = ["sku" => "sku-$k", "price" => $k * 3];
    }
    $lines[] = json_encode(["id" => $n, "customer" => "customer " . $n * 7 % 5000, "items" => $items]);
}
$totals = [];
foreach ($lines as $line) {
    $order = json_decode($line);
    $totals[$order->customer] = ($totals[$order->customer] ?? 0) + array_sum(array_column($order->items, "price"));
}
asort($totals);
echo json_encode(array_slice($totals, -3, null, true)), "\n";
