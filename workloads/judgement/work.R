# A table made, grouped and fitted.
set.seed(7)
n <- 60000
orders <- data.frame(city = sample(sprintf("city%d", 1:300), n, TRUE), price = runif(n), count = sample(1:9, n, TRUE))
sums <- aggregate(price * count ~ city, orders, sum)
words <- vapply(strsplit(paste(orders$city, orders$count), ""), function(all) paste(rev(all), collapse = ""), "")
fit <- lm(price ~ count + city, orders[1:4000, ])
cat(nrow(sums), length(unique(words)), length(coef(fit)), "\n")
