# The server is killed while sketch indexes are built, changed, vacuumed, and learn, and again while it
# recovers: afterwards the indexes are sound.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SketchLoad;
use Test::More;
use Time::HiRes qw(usleep);

my $node = PostgreSQL::Test::Cluster->new('crash');
$node->init;
$node->append_conf('postgresql.conf', $HammingLoad::settings);
$node->start;
SketchLoad::create($node);

srand(20180415);
my ($learnt, $caught) = (0, 0);
# more of them if recovery has always been too fast for us
foreach my $round (1 .. 4 * $HammingLoad::kills)
{
	last if $round > $HammingLoad::kills && $caught > 0;
	my $load = HammingLoad::start_load($node, 6, 60, $round,
		map { "sketch_$_" } qw(insert insert update delete empty rollback build vacuum search));
	usleep(300_000 + rand(1_000_000));
	HammingLoad::kill_server($node);
	$load->{run}->finish;
	$caught += HammingLoad::kill_during_recovery($node, 20_000 * rand() ** 2) if $round % 2 == 0;
	$node->start;
	SketchLoad::is_sound($node, "kill $round");
	# VACUUM ends what was left undone
	$node->safe_psql('postgres', 'VACUUM late');
	SketchLoad::is_sound($node, "kill $round, after VACUUM");
	$learnt += $node->safe_psql('postgres', q{SELECT count(*) FROM sketch_info('late_v') WHERE learnt > 0});
}
cmp_ok($learnt, '>', 0, "there was a model $learnt times");
cmp_ok($caught, '>', 0, "killed during recovery: $caught times");
# a leader of parallel workers that loses the postmaster meets an assertion of the server's own on its way out, in 19
my $log = slurp_file($node->logfile);
$log =~ s/FATAL:  postmaster exited during a parallel transaction\nTRAP: .*pgstat\.c.*//g;
unlike($log, qr/PANIC|inconsistent page|TRAP/, 'no inconsistency in the log');
$node->stop;

done_testing();
