# A streaming replica gives the same answers while the primary writes, and after it takes over.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HammingLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Session;
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
$replica->append_conf('postgresql.conf', "hot_standby_feedback = on\nmax_standby_streaming_delay = -1\nwal_receiver_status_interval = 1s\n");
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
	SET LOCAL enable_indexonlyscan = off;
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
	SELECT md5(string_agg(id::text, ',')) FROM (SELECT id FROM long ORDER BY code <~> repeat('01', 2000)::bit(4001)::bithash LIMIT 500) q};
is($replica->safe_psql('postgres', $digest), $primary->safe_psql('postgres', $digest), 'the same rows in the same order');

# VACUUM cuts the table, and the replica keeps the lock for that to the end of the transaction: who
# reads there has the table, and still wants the index
$primary->safe_psql('postgres', q{
	CREATE TABLE cut (code bithash(64)) WITH (autovacuum_enabled = off);
	INSERT INTO cut SELECT random_code(64) FROM generate_series(1, 3000);
	CREATE INDEX cut_code ON cut USING hamming (code);
});
my $deletion = $primary->safe_psql('postgres', q{BEGIN; DELETE FROM cut; SELECT pg_current_xact_id(); COMMIT});
# rows that the replica says it needs are not removed
$primary->poll_query_until('postgres', qq{SELECT age(backend_xmin) < age('$deletion'::xid) FROM pg_stat_replication})
	or die 'the replica does not follow';
my $reader = Session->new($replica);
$reader->query(q{BEGIN; LOCK TABLE cut IN ACCESS SHARE MODE});
$primary->safe_psql('postgres', 'VACUUM cut');
is($primary->safe_psql('postgres', q{SELECT pg_relation_size('cut'), pages FROM hamming_info('cut_code')}), '0|1', 'the table is cut, and the index ends');
$replica->poll_query_until('postgres', q{SELECT EXISTS (SELECT FROM pg_locks WHERE relation = 'cut'::regclass AND NOT granted)})
	or die 'the replica does not wait for the reader';
is($reader->query(q{SET enable_seqscan = off; SELECT count(*) FROM cut WHERE hamming_within(code, repeat('01', 32)::bithash, 64)}), '0', 'a reader on the replica is not in their way');
$reader->query('COMMIT');
$reader->quit;
$primary->wait_for_catchup($replica, 'replay', $primary->lsn('insert'));

$primary->stop('immediate');
$replica->promote;
$replica->safe_psql('postgres', q{INSERT INTO short (code) SELECT random_code(64) FROM generate_series(1, 2000)});
HammingLoad::is_sound($replica, 'the replica takes over');
unlike(slurp_file($replica->logfile), qr/PANIC|inconsistent page|TRAP/, 'no inconsistency in the log');
$replica->stop;

done_testing();
