# A Perl program of the ordinary kind: lines built, taken apart with regular expressions, counted in hashes of
# hashes and arrays, joined and sorted again.
use strict;
use warnings;

my $state = 42;
sub draw { $state = ($state * 1103515245 + 12345) % 2147483648; return int($state / 65536) % $_[0]; }

my (%pages, %visitors);
my @kinds = qw(GET POST PUT HEAD);
for my $number (1 .. $ARGV[0]) {
    my $line = sprintf '10.%d.%d.%d - user%d [%02d/Nov/2026] "%s /page/%d/part-%d?id=%d HTTP/1.1" %d %d',
        draw(4), draw(250), draw(250), draw(3000), 1 + draw(28), $kinds[draw(4)], draw(400), draw(50),
        $number, 200 + draw(5), draw(100000);
    next unless $line =~ m{^(\S+) \S+ (\S+) \[([^\]]+)\] "(\S+) (/\S+?)\?id=(\d+) \S+" (\d+) (\d+)$};
    my ($address, $user, $day, $kind, $path, $status, $bytes) = ($1, $2, $3, $4, $5, $7, $8);
    my $page = $pages{$path} //= { hits => 0, bytes => 0, days => {}, kinds => [] };
    $page->{hits}++;
    $page->{bytes} += $bytes;
    $page->{days}{$day}++;
    push @{ $page->{kinds} }, $kind unless @{ $page->{kinds} } > 20;
    push @{ $visitors{$user}{$address} }, join '/', split m{/}, $path;
}
my @top = sort { $pages{$b}{hits} <=> $pages{$a}{hits} || $a cmp $b } keys %pages;
my $trace = 0;
for my $user (sort keys %visitors) {
    for my $address (keys %{ $visitors{$user} }) {
        my %seen = map { $_ => 1 } @{ $visitors{$user}{$address} };
        $trace += keys %seen;
    }
}
print "$_ $pages{$_}{hits} $pages{$_}{bytes} ", join(',', @{ $pages{$_}{kinds} }), "\n" for @top[0 .. 4];
print scalar(@top), " pages, $trace steps\n";
