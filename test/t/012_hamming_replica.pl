# A streaming replica gives the same answers while the primary writes, and after it takes over.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HammingLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', $HammingLoad::settings);
$primary->start;
HammingLoad::create($primary);
$primary->backup('backup');
my $replica = PostgreSQL::Test::Cluster->new('replica');
$replica->init_from_backup($primary, 'backup', has_streaming => 1);
# searches on the replica are not cancelled for the sake of VACUUM
$replica->append_conf('postgresql.conf', "hot_standby_feedback = on\nmax_standby_streaming_delay = -1\n");
$replica->start;

# in one snapshot: by the index, and without it
my $compare = q{
	BEGIN ISOLATION LEVEL REPEATABLE READ;
	SET LOCAL enable_seqscan = off;
	SET LOCAL enable_sort = off;
	SELECT md5(string_agg(d::text, ',')) AS by_index FROM (SELECT code <~> (('x' || repeat('5a', 8))::bit(64))::bithash AS d FROM short ORDER BY code <~> (('x' || repeat('5a', 8))::bit(64))::bithash) q \gset
	SET LOCAL enable_seqscan = on;
	SET LOCAL enable_sort = on;
	SET LOCAL enable_indexscan = off;
	SELECT md5(string_agg(d::text, ',')) = :'by_index' FROM (SELECT code <~> (('x' || repeat('5a', 8))::bit(64))::bithash AS d FROM short ORDER BY d) q;
	COMMIT;
};
my $load = HammingLoad::start_load($primary, 4, $HammingLoad::seconds, 1, qw(insert update delete rollback vacuum));
my ($same, $different) = (0, 0);
my $end = time + $HammingLoad::seconds;
while (time < $end)
{
	my $answer = $replica->safe_psql('postgres', $compare);
	$answer eq 't' ? $same++ : $different++;
}
ok(HammingLoad::finish_load($load), 'the primary writes meanwhile');
is($different, 0, "a replica that follows: $same answers are right");
cmp_ok($same, '>', 10, 'and there were some');

$primary->wait_for_catchup($replica, 'replay', $primary->lsn('insert'));
$replica->safe_psql('postgres', q{SELECT hamming_check('short_code'), hamming_check('long_code')});
my $digest = q{SET enable_seqscan = off; SET enable_sort = off;
	SELECT md5(string_agg(id::text, ',')) FROM (SELECT id FROM long ORDER BY code <~> repeat('01', 100)::bit(201)::bithash LIMIT 500) q};
is($replica->safe_psql('postgres', $digest), $primary->safe_psql('postgres', $digest), 'the same rows in the same order');

$primary->stop('immediate');
$replica->promote;
$replica->safe_psql('postgres', q{INSERT INTO short (code) SELECT random_code(64) FROM generate_series(1, 2000)});
HammingLoad::is_sound($replica, 'the replica takes over');
unlike(slurp_file($replica->logfile), qr/PANIC|inconsistent page|TRAP/, 'no inconsistency in the log');
$replica->stop;

done_testing();
