# Records of strings and hashes, grouped and sorted.
records = File.foreach("orders.tsv").first(60_000).map do |line|
  number, customer, city, price, note = line.chomp.split("\t")
  { number: number.to_i, customer: customer, city: city, price: price.to_f, words: note.split }
end
by_city = records.group_by { |record| record[:city] }
sums = by_city.transform_values { |list| list.sum { |record| record[:price] * record[:words].size } }
texts = records.map { |record| "#{record[:customer]}-#{record[:number]}".upcase.reverse }
puts sums.values.sum.round(2), texts.sort.each_slice(3).map(&:join).uniq.size
