# Citus: models are learnt on the shards and merged, codes are made and searched there.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Items;
use Page;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

chomp(my $library = `pg_config --pkglibdir`);
plan skip_all => 'Citus is not available in this server' unless -e "$library/citus.so";

my @nodes = map { PostgreSQL::Test::Cluster->new($_) } 'coordinator', 'worker_1', 'worker_2';
my ($coordinator, @workers) = @nodes;
foreach my $node (@nodes)
{
	my $host = $node->host;
	$node->init(allows_streaming => 'logical');
	$node->append_conf('postgresql.conf', $Items::settings);
	$node->append_conf('postgresql.conf', qq{
		shared_preload_libraries = 'citus'
		citus.local_hostname = '$host'
		max_connections = 60
		enable_seqscan = off
	});
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION citus');
}
$coordinator->safe_psql('postgres', sprintf("SELECT citus_set_coordinator_host('%s', %d)", $coordinator->host, $coordinator->port));
$coordinator->safe_psql('postgres', sprintf("SELECT citus_add_node('%s', %d)", $_->host, $_->port)) foreach @workers;
$coordinator->safe_psql('postgres', 'CREATE EXTENSION unifdiag');
is($_->safe_psql('postgres', q{SELECT count(*) FROM pg_extension WHERE extname = 'unifdiag'}), 1, $_->name . ' has the extension') foreach @workers;

sub value
{
	return $coordinator->safe_psql('postgres', $_[0]);
}

# the page
Page::run('doc/beyond-one-machine.md', 'citus', $coordinator, 'postgres');
is(value('SELECT count(*) FROM items, models WHERE models.id = 1 AND code IS DISTINCT FROM sketcher_hash(model, v)'), 0, 'all codes are right');

# the aggregates do their work on the shards, whose states come as text or, since Citus 14, in binary form
foreach my $aggregate ('sketcher_agg(v, 8)', 'sketcher_learn((SELECT model FROM models WHERE id = 1), v)')
{
	like(value("EXPLAIN (VERBOSE, COSTS off) SELECT $aggregate FROM items"), qr/worker_(binary_)?partial_agg\('public\.sketcher/, "$aggregate is partial");
}
value(q{CREATE TABLE parts (id int, model sketcher); SELECT create_distributed_table('parts', 'id');
	INSERT INTO parts SELECT id % 8, sketcher_agg(v, 8) FROM items GROUP BY id % 8});
like(value('EXPLAIN (VERBOSE, COSTS off) SELECT sketcher_merge(model) FROM parts'), qr/worker_(binary_)?partial_agg\('public\.sketcher_merge/, 'sketcher_merge is partial');
is(value('SELECT (sketcher_info(sketcher_merge(model))).rows FROM parts'), 2001, 'and has all rows');
is(value('SELECT (sketcher_info(sketcher_learn(sketcher_new(16, 8, rotation => \'random\'), v))).rows FROM items'), 2001, 'a new model learns on the shards');
# the mean of a model does not depend on who learnt what
is(value(q{
	SELECT max(abs(mean - average)) < 1e-4
	FROM (SELECT (sketcher_mean(m))[k] AS mean, k FROM (SELECT sketcher_agg(v, 8) AS m FROM items) a, generate_series(1, 16) k) x
	JOIN (SELECT k, avg(v[k]) AS average FROM items, generate_series(1, 16) k GROUP BY k) y USING (k)}), 't', 'the mean is that of all rows');

# searches: by the indexes of the shards, and right
value(qq{
	$Items::functions
	CREATE TABLE things ($Items::columns);
	SELECT create_distributed_table('things', 'id', shard_count => 4);
	INSERT INTO things SELECT $Items::row FROM generate_series(1, 2000) i;
	CREATE TABLE things_here ($Items::columns);
	INSERT INTO things_here SELECT $Items::row FROM generate_series(1, 2000) i});
Items::create_indexes($coordinator, 'postgres', 'things');
sub searches_are_right
{
	my ($name) = @_;
	foreach my $search (@Items::searches)
	{
		like(Items::query_plan($coordinator, 'postgres', 'things', $search, ''), qr/Limit.*Task.*Limit.*Index (Only )?Scan using things_$search->{kind}_\d+/s,
			"$name: $search->{kind} is used on the shards");
		is(Items::distances($coordinator, 'postgres', 'things', $search, ''), Items::distances($coordinator, 'postgres', 'things_here', $search, ''),
			"$name: $search->{kind} gives the right distances");
		is(value(qq{SELECT bool_and(success), count(*) FROM run_command_on_shards('things', \$\$
			SELECT $search->{check}(indexrelid) FROM pg_index WHERE indrelid = '%s'::regclass AND indexrelid::regclass::text LIKE 'things\\_$search->{kind}\\_%%'\$\$)}), 't|4',
			"$name: $search->{kind} is sound on each");
	}
	return;
}
searches_are_right('at first');
is(value('SELECT count(*) FROM things WHERE hamming_within(code, code_of(7), 26)'), value('SELECT count(*) FROM things_here WHERE hamming_within(code, code_of(7), 26)'), 'rows within a radius');

# a shard moves to the other worker, while it can be read and written
value(sprintf(q{SELECT citus_move_shard_placement(shardid, '%1$s', %2$d, '%1$s', %3$d, 'force_logical') 
	FROM (SELECT min(shardid) AS shardid FROM pg_dist_placement JOIN pg_dist_node USING (groupid) JOIN pg_dist_shard USING (shardid)
		WHERE logicalrelid = 'things'::regclass AND nodeport = %2$d) AS shard}, $coordinator->host, map { $_->port } @workers));
value("INSERT INTO things SELECT $Items::row FROM generate_series(2001, 2100) i");
value("INSERT INTO things_here SELECT $Items::row FROM generate_series(2001, 2100) i");
searches_are_right('after a move');

# no triggers there: refused, with what to do instead
my ($status, $out, $error) = $coordinator->psql('postgres', q{SELECT sketcher_attach('items', 'v', 'another', 8)});
isnt($status, 0, 'sketcher_attach refuses a distributed table');
like($error, qr/HINT: .*sketcher_agg.*sketcher_hash/, 'and has a hint');
is(value(q{SELECT count(*) FROM pg_class WHERE relname = 'items_another_model'}), 0, 'and leaves nothing behind');

$_->stop foreach reverse @nodes;
unlike(slurp_file($_->logfile), qr/TRAP|PANIC/, 'nothing went wrong behind the scenes of ' . $_->name) foreach @nodes;
done_testing();
