# Each thread is a copy of the whole interpreter: tens of thousands of allocations at its start,
# freed by the thread that joins it.
use strict;
use warnings;
use threads;
use threads::shared;
use Thread::Queue;

my $rounds = shift;
my %table = map { ("key $_" => [ map { $_ * 2 } 1 .. $_ % 30 ]) } 1 .. 3000;
my $queue = Thread::Queue->new;
my $total : shared = 0;

sub work {
    my ($name) = @_;
    my $sum = 0;
    while (defined(my $item = $queue->dequeue)) {
        my $copy = join ',', map { @{ $table{"key $_"} } } $item .. $item + 20;
        $sum += length $copy;
    }
    delete $table{"key $_"} for 1 .. 1500;
    lock $total;
    $total += $sum;
    return scalar keys %table;
}

for my $round (1 .. $rounds) {
    my @threads = map { threads->create(\&work, "thread $_") } 1 .. 4;
    $queue->enqueue(1 .. 100);
    $queue->enqueue((undef) x 4);
    my @left = map { $_->join } @threads;
    print "round $round: @left\n";
}
print "total: $total\n";
