# A streaming replica gives the same answers while the primary writes and learns, and after it takes over.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SketchLoad;
use Test::More;

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', $HammingLoad::settings);
$primary->start;
SketchLoad::create($primary);
$primary->backup('backup');
my $replica = PostgreSQL::Test::Cluster->new('replica');
$replica->init_from_backup($primary, 'backup', has_streaming => 1);
# searches on the replica are not cancelled for the sake of VACUUM
$replica->append_conf('postgresql.conf', "hot_standby_feedback = on\nmax_standby_streaming_delay = -1\nwal_receiver_status_interval = 1s\n");
$replica->start;

# in one snapshot: by the index, and without it
my $compare = q{
	BEGIN ISOLATION LEVEL REPEATABLE READ;
	SET LOCAL enable_seqscan = off;
	SET LOCAL enable_sort = off;
	SELECT count(*) AS n, coalesce(sum(hashint4(id)), 0) AS rows FROM (SELECT id FROM late ORDER BY v <-> (SELECT array_agg(sin(k)::real) FROM generate_series(1, 24) k)) q \gset
	SET LOCAL enable_seqscan = on;
	SET LOCAL enable_indexscan = off;
	SET LOCAL enable_indexonlyscan = off;
	SELECT count(*) = :n AND coalesce(sum(hashint4(id)), 0) = :rows FROM late;
	COMMIT;
};
my $load = HammingLoad::start_load($primary, 4, $HammingLoad::seconds, 1,
	map { "sketch_$_" } qw(insert insert update delete empty rollback vacuum));
my ($same, $different) = (0, 0);
my $end = time + $HammingLoad::seconds;
while (time < $end)
{
	my $answer = $replica->safe_psql('postgres', $compare);
	$answer eq 't' ? $same++ : $different++;
}
ok(HammingLoad::finish_load($load), 'the primary writes meanwhile');
is($different, 0, "a replica that follows: $same answers are right");
cmp_ok($same, '>', 5, 'and there were some');

$primary->wait_for_catchup($replica, 'replay', $primary->lsn('insert'));
$replica->safe_psql('postgres', q{SELECT sketch_check('late_v'), sketch_check('built_v')});
my $digest = q{SET enable_seqscan = off; SET enable_sort = off;
	SELECT md5(string_agg(id::text, ',')) FROM (SELECT id FROM built ORDER BY v <=> (SELECT array_agg(sin(k)::real) FROM generate_series(1, 600) k) LIMIT 500) q};
is($replica->safe_psql('postgres', $digest), $primary->safe_psql('postgres', $digest), 'the same rows in the same order');

$primary->stop('immediate');
$replica->promote;
$replica->safe_psql('postgres', q{INSERT INTO late (v) SELECT random_vector(24) FROM generate_series(1, 2000)});
SketchLoad::is_sound($replica, 'the replica takes over');
unlike(slurp_file($replica->logfile), qr/PANIC|inconsistent page|TRAP/, 'no inconsistency in the log');
$replica->stop;

done_testing();
