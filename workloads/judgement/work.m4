divert(-1)
# Numbers, joined and taken apart again.
define(`repeat', `ifelse($1, 0, `', `$2`'repeat(decr($1), `$2')')')
define(`count', `ifelse($1, 0, `', `define(`name$1', `$1-name$1-'substr(`abcdefghijklmnopqrstuvwxyz', eval($1 % 20), 5))count(decr($1))')')
define(`sum', `ifelse($1, 0, 0, `eval(len(translit(`name'$1, `a-z', `A-Z')) + sum(decr($1)))')')
count(2500)
divert(0)dnl
repeat(700, `sum(60) ')
