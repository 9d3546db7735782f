# Clients that write and search, with VACUUM as eager as it gets; indexes that are built concurrently; and
# a load that is followed from the first row on.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SketchLoad;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('concurrent');
$node->init;
$node->append_conf('postgresql.conf', $HammingLoad::settings);
$node->start;
SketchLoad::create($node);
my @loads = (
	HammingLoad::start_load($node, 10, $HammingLoad::seconds, 1, map { "sketch_$_" } qw(insert insert update delete rollback search search)),
	# one that builds at a time, so that names do not clash; of two that delete all, one may wait for the other
	HammingLoad::start_load($node, 1, $HammingLoad::seconds, 2, 'sketch_build'),
	HammingLoad::start_load($node, 1, $HammingLoad::seconds, 3, 'sketch_vacuum', 'sketch_empty'));
ok(HammingLoad::finish_load($_), 'no client had an error') foreach @loads;
SketchLoad::is_sound($node, 'the indexes are sound');

# built while others write
my $load = HammingLoad::start_load($node, 4, 5, 4, map { "sketch_$_" } qw(insert update delete));
$node->safe_psql('postgres', 'CREATE INDEX CONCURRENTLY late_concurrent ON late USING sketch (v)');
$node->safe_psql('postgres', 'REINDEX INDEX CONCURRENTLY built_v');
ok(HammingLoad::finish_load($load), 'no client had an error while indexes were built');
SketchLoad::is_sound($node, 'the indexes that were built are sound');

# a table that was unlogged when the server was killed is empty, and its index with it
$node->safe_psql('postgres', q{
	CREATE UNLOGGED TABLE unlogged AS SELECT random_vector(24) AS v FROM generate_series(1, 2000);
	CREATE INDEX unlogged_v ON unlogged USING sketch (v);
	CHECKPOINT;
});
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', q{SELECT count(*) FROM unlogged}), '0', 'an unlogged table after a crash');
is($node->safe_psql('postgres', q{SELECT bits, rows, bytes FROM sketch_info('unlogged_v')}), '|0|8192', 'and its index');
$node->safe_psql('postgres', q{INSERT INTO unlogged SELECT random_vector(24) FROM generate_series(1, 2000); SELECT sketch_check('unlogged_v')});

# an index that is made before its rows: right all along, and when enough have come it looks at few rows
$node->safe_psql('postgres', q{
	CREATE TABLE loaded (id serial, v real[]) WITH (autovacuum_enabled = off);
	CREATE INDEX loaded_v ON loaded USING sketch (v) WITH (bits = 64);
});
my ($before, $after) = (0, 0);
foreach my $rows (100, 500, 1000, 4000, 10000)
{
	$node->safe_psql('postgres', qq{INSERT INTO loaded (v) SELECT random_vector(200) FROM generate_series((SELECT count(*) + 1 FROM loaded), $rows)});
	cmp_ok($node->safe_psql('postgres', q{SELECT sketch_recall('loaded_v', 10, 30)}), '>=', 0.95, "recall of $rows rows");
	my $unsketched = $node->safe_psql('postgres', q{SELECT unsketched FROM sketch_info('loaded_v')});
	is($unsketched, $rows < 640 ? $rows : 0, "$unsketched of $rows rows are without a sketch");
	my $buffers = $node->safe_psql('postgres', q{SET enable_seqscan = off; SET enable_sort = off;
		EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT id FROM loaded ORDER BY v <-> (SELECT random_vector(200)) LIMIT 10});
	my ($hit) = $buffers =~ /Buffers: shared hit=(\d+)/;
	$rows < 640 ? ($before = $hit) : ($after = $hit);
	note("$rows rows: $hit buffers");
}
cmp_ok($after, '<', 10 * $before, "a search of 20 times the rows looks at less than 10 times the pages: $before, $after");
$node->stop;

done_testing();
