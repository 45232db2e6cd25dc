-- A small shop in memory: filled, indexed, joined, grouped, turned into JSON, changed and searched.
PRAGMA temp_store = memory;
CREATE TABLE article (id INTEGER PRIMARY KEY, name TEXT, price INTEGER);
CREATE TABLE sale (id INTEGER PRIMARY KEY, article INTEGER, customer TEXT, count INTEGER, day INTEGER);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
  INSERT INTO article SELECT i, 'article ' || (i * 7919 % 5003), i * 31 % 997 FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
  INSERT INTO sale SELECT i, i * 7919 % 5000 + 1, 'customer ' || (i * 104729 % 3001), i % 9 + 1, i % 365 FROM n;
CREATE INDEX sale_article ON sale (article);
CREATE INDEX sale_customer ON sale (customer, day);
SELECT customer, sum(count * price) AS total FROM sale JOIN article ON article.id = sale.article
  GROUP BY customer ORDER BY total DESC, customer LIMIT 3;
SELECT day, group_concat(DISTINCT substr(customer, 10)) AS who FROM sale WHERE article < 50 GROUP BY day LIMIT 2;
SELECT count(*), sum(length(j)) FROM (SELECT json_group_array(json_object('a', name, 'p', price)) AS j
  FROM article JOIN sale ON sale.article = article.id GROUP BY sale.customer);
UPDATE sale SET customer = replace(customer, 'customer', 'client') WHERE day % 3 = 0;
DELETE FROM sale WHERE count = 9;
SELECT count(*), count(DISTINCT customer), sum(count) FROM sale;
