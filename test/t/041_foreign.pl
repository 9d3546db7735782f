# postgres_fdw: distances, conditions, order and limit go to the remote server, whose indexes serve them.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Items;
use Page;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my ($local, $remote) = map { PostgreSQL::Test::Cluster->new($_) } 'local', 'remote';
foreach my $node ($local, $remote)
{
	$node->init;
	$node->append_conf('postgresql.conf', $Items::settings);
	$node->start;
}
plan skip_all => 'postgres_fdw is not available in this server'
  unless $local->safe_psql('postgres', q{SELECT count(*) FROM pg_available_extensions WHERE name = 'postgres_fdw'});

$remote->safe_psql('postgres', qq{
	CREATE EXTENSION unifdiag;
	$Items::functions
	CREATE TABLE items ($Items::columns);
	INSERT INTO items SELECT $Items::row FROM generate_series(1, 1000) i;
	ALTER DATABASE postgres SET enable_seqscan = off;
});
Items::create_indexes($remote, 'postgres', 'items');
my ($host, $port) = ($remote->host, $remote->port);
$local->safe_psql('postgres', "CREATE EXTENSION unifdiag; $Items::functions");
# the page names another server
Page::run('doc/beyond-one-machine.md', 'foreign', $local, 'postgres');
$local->safe_psql('postgres', "ALTER SERVER remote OPTIONS (SET host '$host', port '$port')");
foreach my $search (@Items::searches)
{
	my ($kind, $order) = ($search->{kind}, $search->{order});
	# whether LIMIT goes there, too, is a matter of costs: rows come by a cursor, a few at a time
	like(Items::query_plan($local, 'postgres', 'items', $search, ''), qr/Remote SQL: SELECT .* ORDER BY/, "$kind: the order goes to the remote server");
	is(Items::distances($local, 'postgres', 'items', $search, ''), Items::distances($remote, 'postgres', 'items', $search, $Items::by_sort),
		"$kind: the answer is right");
	ok($remote->poll_query_until('postgres', "SELECT idx_scan > 0 FROM pg_stat_user_indexes WHERE indexrelname = 'items_$kind'"), "$kind: its index was used there");
}
# by costs that the remote server tells, a small limit goes there, too; fetching so small a table and sorting it here costs about as much
$remote->safe_psql('postgres', 'ANALYZE items');
$local->safe_psql('postgres', "ALTER SERVER remote OPTIONS (ADD use_remote_estimate 'true')");
foreach my $search (@Items::searches)
{
	like($local->safe_psql('postgres', "SET enable_sort = off; EXPLAIN (VERBOSE, COSTS off) SELECT id FROM items ORDER BY $search->{order} LIMIT 5"), qr/Remote SQL: SELECT .* ORDER BY .* LIMIT 5/, "$search->{kind}: a limit goes there, too");
}
$local->safe_psql('postgres', 'ALTER SERVER remote OPTIONS (DROP use_remote_estimate)');
my $within = q{FROM items WHERE hamming_within(code, code_of(7), 28)};
like($local->safe_psql('postgres', "EXPLAIN (VERBOSE, COSTS off) SELECT id $within"), qr/Remote SQL: .* WHERE .*hamming_within/, 'hamming_within goes there');
is($local->safe_psql('postgres', "SELECT count(*), min(id) $within"), $remote->safe_psql('postgres', "SET enable_indexscan = off; SET enable_bitmapscan = off; SELECT count(*), min(id) $within"),
	'and finds the same rows');

# a partition here, and one there
$remote->safe_psql('postgres', "CREATE TABLE items_there ($Items::columns)");
Items::create_indexes($remote, 'postgres', 'items_there');
$local->safe_psql('postgres', qq{
	CREATE TABLE everywhere ($Items::columns) PARTITION BY RANGE (id);
	CREATE TABLE items_here PARTITION OF everywhere FOR VALUES FROM (MINVALUE) TO (500);
	CREATE FOREIGN TABLE items_there PARTITION OF everywhere FOR VALUES FROM (500) TO (MAXVALUE) SERVER remote;
	INSERT INTO everywhere SELECT $Items::row FROM generate_series(1, 1000) i;
});
Items::create_indexes($local, 'postgres', 'items_here');
foreach my $search (@Items::searches)
{
	my ($kind, $order) = ($search->{kind}, $search->{order});
	my $plan = Items::query_plan($local, 'postgres', 'everywhere', $search, 'SET enable_seqscan = off');
	like($plan, qr/Merge Append.*Index (Only )?Scan using items_here_$kind/s, "$kind: the partition here is searched by its index");
	like($plan, qr/Merge Append.*Remote SQL: .* ORDER BY/s, "$kind: and merged with what the one there sends in order");
	is(Items::distances($local, 'postgres', 'everywhere', $search, 'SET enable_seqscan = off'), Items::distances($remote, 'postgres', 'items', $search, $Items::by_sort),
		"$kind: the answer is right");
}

# models of both, merged here
is($local->safe_psql('postgres', q{SELECT (sketcher_info(sketcher_merge(m))).rows FROM (SELECT sketcher_agg(v, 8) AS m FROM everywhere GROUP BY id < 500) parts}), 1000, 'a model of all rows');

$local->stop;
$remote->stop;
done_testing();
