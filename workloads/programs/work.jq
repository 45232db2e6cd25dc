# The three cities with the largest orders: parsed records filtered, grouped, summed and sorted.
map(select(.tags | length > 1))
| group_by(.customer.city)
| map({
    city: .[0].customer.city,
    total: (map(.lines[] | .price * .count) | add),
    names: (map(.customer.name) | unique | length)
  })
| sort_by(-.total)
| .[0:3]
