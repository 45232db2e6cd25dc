.bail on
PRAGMA page_size = 4096;
PRAGMA cache_size = -16000;
CREATE TABLE book (id INTEGER PRIMARY KEY, title TEXT, author INTEGER, price REAL, text BLOB);
CREATE TABLE author (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
INSERT INTO author SELECT i, printf('Author %05d', (i * 7919) % 100003) FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {size})
INSERT INTO book
SELECT i, printf('Title %x', (i * 2654435761) % 4294967296), (i * 31) % 1000 + 1,
       ((i * 48271) % 100000) / 100.0, zeroblob(i % 200)
FROM n;
CREATE INDEX book_by_title ON book (title);
CREATE INDEX book_by_author ON book (author, price);
SELECT name, count(*), round(avg(price), 2), group_concat(substr(title, 7, 2), '')
FROM book JOIN author ON author.id = book.author
GROUP BY author.id ORDER BY 3 DESC, name LIMIT 20;
SELECT count(DISTINCT substr(title, 7, 3)), max(length(text)) FROM book;
WITH ranked AS (
    SELECT author, price, row_number() OVER (PARTITION BY author ORDER BY price DESC, id) AS place
    FROM book
)
SELECT sum(price) FROM ranked WHERE place <= 3;
SELECT json_group_array(json_object('id', id, 'title', title)) FROM (SELECT * FROM book LIMIT 200);
DELETE FROM book WHERE id % 3 = 0;
UPDATE book SET title = upper(title) || ' (second edition)' WHERE id % 5 = 0;
VACUUM;
SELECT 'integrity: ' || integrity_check FROM pragma_integrity_check;
SELECT count(*), sum(price) FROM book;
