/* A program on sqlite: a database in memory, filled, indexed, joined, grouped, searched. Prints every
 * row that it is answered. */
#include <sqlite3.h>
#include <stdio.h>

static int row(void *context, int count, char **values, char **names) {
    (void)context, (void)names;
    for (int i = 0; i < count; i++)
        printf("%s%s", i ? "|" : "", values[i] ? values[i] : "NULL");
    puts("");
    return 0;
}

static const char *const script[] = {
    "create table people(id integer primary key, name text, born integer, score real)",
    "with recursive n(i) as (select 1 union all select i + 1 from n where i < 3000)"
    " insert into people select i, 'name' || (i * 7919 % 3001), 1900 + i % 120, i * 0.37 from n",
    "create index by_born on people(born, name)",
    "create table notes(person integer references people, body text)",
    "insert into notes select id, 'note of ' || name || ' about ' || (id % 17) from people where id % 3 = 0",
    "select count(*), sum(score), avg(born), min(name), max(name) from people",
    "select born, count(*), group_concat(id, '+') from people where id < 500 group by born order by 2 desc, 1 limit 5",
    "select p.name, n.body from people p join notes n on n.person = p.id where p.born between 1950 and 1952 order by p.name limit 7",
    "select name, rank() over (partition by born order by score desc) r from people where born = 1999 order by r limit 4",
    "create virtual table words using fts5(body)",
    "insert into words select body from notes",
    "select rowid, body from words where words match 'about AND 16' order by rowid limit 4",
    "select json_extract('{\"a\":[1,2,{\"b\":\"x\"}]}', '$.a[2].b'), json_group_array(id) from people where id < 9",
    "create virtual table boxes using rtree(id, x0, x1, y0, y1)",
    "insert into boxes select id, id % 50, id % 50 + 2, id % 31, id % 31 + 1 from people",
    "select count(*) from boxes where x0 > 10 and x1 < 20 and y0 > 3",
    "update people set score = score * 2 where id in (select person from notes)",
    "delete from people where born % 2 = 1",
    "select count(*), round(sum(score), 3) from people",
    "select printf('%08.3f|%x|%s', 3.14159, 255, quote('it''s')), upper('abc'), hex(zeroblob(3)), typeof(1.0)",
    "select strftime('%Y-%m-%d', 1700000000, 'unixepoch'), julianday('2000-01-01')",
    "pragma integrity_check",
    "select sqlite_version()",
};

int main(void) {
    sqlite3 *db;
    char *error = NULL;
    if (sqlite3_open(":memory:", &db) != SQLITE_OK)
        return 1;
    for (unsigned i = 0; i < sizeof script / sizeof *script; i++) {
        if (sqlite3_exec(db, script[i], row, NULL, &error) != SQLITE_OK) {
            printf("error: %s: %s\n", script[i], error);
            sqlite3_free(error);
        }
    }
    return sqlite3_close(db) == SQLITE_OK ? 0 : 2;
}
