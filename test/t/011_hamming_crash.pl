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

# All at once, as when the machine goes down: nobody has a chance to write anything more.
sub kill_server
{
	my $postmaster = (split /\n/, slurp_file($node->data_dir . '/postmaster.pid'))[0];
	my @children;
	# first of all, it shall have no more children than we see
	kill 'STOP', $postmaster;
	usleep(1_000) until slurp_file("/proc/$postmaster/stat") =~ /\) T /;
	foreach my $stat (glob '/proc/[0-9]*/stat')
	{
		# number, name in parentheses, state, parent
		my $content = eval { slurp_file($stat) } // '';
		push @children, $1 if $content =~ /^(\d+) .*\) \S $postmaster /s;
	}
	kill 'KILL', $postmaster, @children;
	usleep(10_000) while kill 0, $postmaster;
	# the orphans' shared memory must be gone before the next start
	foreach my $child (@children)
	{
		usleep(10_000) while kill 0, $child;
	}
	unlink $node->data_dir . '/postmaster.pid';
	$node->{_pid} = undef;
	return;
}

# Starts the server and kills it before it has recovered.
sub kill_during_recovery
{
	my ($delay) = @_;
	my $log = $node->logfile;
	my $offset = -s $log;
	system("pg_ctl -W -s -D '" . $node->data_dir . "' -l '$log' start");
	usleep(1_000) until slurp_file($log, $offset) =~ /redo starts|ready to accept/;
	usleep($delay);
	my $caught = slurp_file($log, $offset) !~ /redo done|ready to accept/;
	kill_server();
	return $caught;
}

srand(20180415);
my $caught = 0;
# more of them if recovery has always been too fast for us
foreach my $round (1 .. 4 * $HammingLoad::kills)
{
	last if $round > $HammingLoad::kills && $caught > 0;
	my $load = HammingLoad::start_load($node, 6, 60, $round, qw(insert update delete rollback build vacuum search));
	usleep(300_000 + rand(1_000_000));
	kill_server();
	$load->{run}->finish;
	# lines of the log that tell of trouble other than our kills
	$caught += kill_during_recovery(20_000 * rand() ** 2) if $round % 2 == 0;
	$node->start;
	HammingLoad::is_sound($node, "kill $round");
}
cmp_ok($caught, '>', 0, "killed during recovery: $caught times");
unlike(slurp_file($node->logfile), qr/PANIC|inconsistent page|TRAP/, 'no inconsistency in the log');
$node->stop;

done_testing();
