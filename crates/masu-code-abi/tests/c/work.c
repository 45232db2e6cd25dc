long total;
long step(long i) {
  total += i ^ 3;
  return total;
}
long work(long n) {
  for (long i = 0; i < n; i++)
    step(i);
  return total;
}
