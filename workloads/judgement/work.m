% Matrices multiplied and solved, text split and joined.
rand("seed", 7);
a = rand(500);
b = a * a' + 500 * eye(500);
c = b \ a;
words = {};
for i = 1:20000
  words{end + 1} = sprintf("word%d", mod(i * 7919, 1000));
end
printf("%.3f %d\n", sum(c(:)), numel(unique(words)));
