-- Tables and strings under a compiler that makes code while it runs.
local sums, names = {}, {}
for line in io.lines("orders.tsv") do
  local number, customer, city, price = line:match("^(%d+)\t(%S+)\t(%S+)\t(%S+)")
  sums[city] = (sums[city] or 0) + tonumber(price)
  names[#names + 1] = { customer:upper() .. number, price = tonumber(price) }
end
table.sort(names, function(a, b) return a[1] < b[1] end)
local total = 0
for _, sum in pairs(sums) do total = total + sum end
for index = 1, #names, 1000 do total = total + names[index].price end
print(string.format("%.2f %d", total, #names))
