"""Orders as JSON: made, parsed, grouped by customer, sorted, written again."""
import json
import sys

orders = int(sys.argv[1])
lines = [
    json.dumps({"id": n, "customer": f"customer {n * 7 % 5000}", "items": [{"sku": f"sku-{k}", "price": k * 3} for k in range(n % 6)]})
    for n in range(orders)
]
totals = {}
for line in lines:
    order = json.loads(line)
    totals.setdefault(order["customer"], []).append(sum(item["price"] for item in order["items"]))
print(json.dumps(sorted((sum(prices), name) for name, prices in totals.items())[-3:]))
