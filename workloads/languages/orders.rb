# Orders as JSON: made, parsed, grouped by customer, sorted, written again.
require "json"

orders = Integer(ARGV[0])
lines = Array.new(orders) do |n|
  items = Array.new(n % 6) { |k| { sku: "sku-#{k}", price: k * 3 } }
  { id: n, customer: "customer #{n * 7 % 5000}", items: items }.to_json
end
totals = Hash.new { |hash, name| hash[name] = [] }
lines.each do |line|
  order = JSON.parse(line)
  totals[order["customer"]] << order["items"].sum { |item| item["price"] }
end
puts totals.map { |name, prices| [prices.sum, name] }.sort.last(3).to_json
