# Hashes, lists, strings that grow, expressions, sorting, eval, closures, destructors, fork.
use strict;
use warnings;

my $count = shift;
my $state = 1;
sub number { $state = ($state * 48271) % 2147483647; return $state % $_[0] }

my %words;
for my $i (1 .. $count) {
    my $word = join '', map { chr(97 + number(26)) } 1 .. 1 + number(5);
    push @{ $words{$word}{at} }, $i if number(3);
    $words{$word}{count}++;
    delete $words{$word} if $words{$word}{count} > 20;
}
my @common = sort { $words{$b}{count} <=> $words{$a}{count} || $a cmp $b } keys %words;
print scalar(@common), " words: @common[0 .. 9]\n";

my $text = '';
$text .= sprintf('%05d;%s|', $_, 'z' x number(50)) for 1 .. $count / 4;
my $matches = () = $text =~ /(\d+);(z{10,20})\|/g;
(my $short = $text) =~ s/z+/length($&)/ge;
print "matches: $matches, ", length($text), " to ", length($short), "\n";
print "unpacked: ", unpack('%32C*', pack('w*', map { number(1 << 20) } 1 .. $count / 4)), "\n";

package Node {
    our $alive = 0;
    sub new { my ($class, %fields) = @_; $alive++; return bless {%fields}, $class }
    sub DESTROY { $alive-- }
}
for my $round (1 .. 20) {
    my $list;
    $list = Node->new(next => $list, value => 'v' x number(300)) for 1 .. $count / 60;
    # One at a time: a chain dropped at once would be freed by recursion.
    while ($list) { my $next = delete $list->{next}; $list = $next }
}
print "alive: $Node::alive\n";
print "eval: ", (eval join '+', map { "length('" . 'q' x $_ . "')" } 1 .. 300), "\n";

my $done = 0;
$| = 1;
for my $child (1 .. 4) {
    my $pid = open(my $from, '-|') // die "fork: $!";
    if (!$pid) { my @list = map { "$_" x 10 } 1 .. 1000; print scalar(@list) * $child; exit 0 }
    my $answer = <$from>;
    close $from or die "child: $?";
    $done++ if $answer == 1000 * $child;
}
print "children: $done\n";
