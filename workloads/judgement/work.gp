/* Numbers and polynomials on the program's own stack. */
s = 0;
for (n = 1, 500, f = factor(2^90 + 7919*n); s += #f~);
m = matrix(160, 160, i, j, (i*j*7919) % 1009);
s += matdet(m) % 1000003;
p = prod(k = 1, 120, 'x - k);
s += polcoeff(p, 60) % 1000003;
print(s);
