# The server is killed while a hamming index is built, changed and vacuumed, and again while it
# recovers: afterwards the index is sound.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HammingLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $node = PostgreSQL::Test::Cluster->new('crash');
$node->init;
$node->append_conf('postgresql.conf', $HammingLoad::settings);
$node->start;
HammingLoad::create($node);

srand(20180415);
my $caught = 0;
# more of them if recovery has always been too fast for us
foreach my $round (1 .. 4 * $HammingLoad::kills)
{
	last if $round > $HammingLoad::kills && $caught > 0;
	my $load = HammingLoad::start_load($node, 6, 60, $round, qw(insert update delete rollback build vacuum search));
	usleep(300_000 + rand(1_000_000));
	HammingLoad::kill_server($node);
	$load->{run}->finish;
	# lines of the log that tell of trouble other than our kills
	$caught += HammingLoad::kill_during_recovery($node, 20_000 * rand() ** 2) if $round % 2 == 0;
	$node->start;
	HammingLoad::is_sound($node, "kill $round");
}
cmp_ok($caught, '>', 0, "killed during recovery: $caught times");
# a leader of parallel workers that loses the postmaster meets an assertion of the server's own on its way out, in 19
my $log = slurp_file($node->logfile);
$log =~ s/FATAL:  postmaster exited during a parallel transaction\nTRAP: .*pgstat\.c.*//g;
unlike($log, qr/PANIC|inconsistent page|TRAP/, 'no inconsistency in the log');
$node->stop;

done_testing();
