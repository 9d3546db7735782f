# Logical replication: a subscriber has the rows, makes indexes of its own, and gives the same answers.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Items;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my ($publisher, $subscriber) = map { PostgreSQL::Test::Cluster->new($_) } 'publisher', 'subscriber';
foreach my $node ($publisher, $subscriber)
{
	$node->init(allows_streaming => 'logical');
	$node->append_conf('postgresql.conf', $Items::settings);
	$node->start;
	$node->safe_psql('postgres', qq{
		CREATE EXTENSION unifdiag;
		$Items::functions
		CREATE TABLE items ($Items::columns, PRIMARY KEY (id));
		CREATE TABLE models (id int PRIMARY KEY, model sketcher)});
	Items::create_indexes($node, 'postgres', 'items');
}
$publisher->safe_psql('postgres', qq{
	INSERT INTO items SELECT $Items::row FROM generate_series(1, 1000) i;
	CREATE PUBLICATION everything FOR ALL TABLES});
# the binary forms of all types travel too
$subscriber->safe_psql('postgres', sprintf("CREATE SUBSCRIPTION s CONNECTION '%s dbname=postgres' PUBLICATION everything WITH (binary = true)", $publisher->connstr));
$subscriber->poll_query_until('postgres', q{SELECT count(*) = 2 FROM pg_subscription_rel WHERE srsubstate = 'r'}) or die 'no initial copy';

$publisher->safe_psql('postgres', $_) foreach (
	"INSERT INTO items SELECT $Items::row FROM generate_series(1001, 2000) i",
	'UPDATE items SET code = code_of(-id), v = vector_of(-id) WHERE id % 5 = 0',
	'DELETE FROM items WHERE id % 7 = 0',
	'INSERT INTO models SELECT 1, sketcher_agg(v, 8) FROM items',
	'UPDATE models SET model = (SELECT sketcher_learn(model, v) FROM items WHERE id > 1500)',
	'VACUUM items');
$publisher->wait_for_catchup('s');
$subscriber->safe_psql('postgres', 'VACUUM items');

my $digest = q{SELECT count(*), md5(string_agg(id || ' ' || code::text || ' ' || v::text, ',' ORDER BY id)), (SELECT md5(model::text) FROM models) FROM items};
is($subscriber->safe_psql('postgres', $digest), $publisher->safe_psql('postgres', $digest), 'the same rows and the same model');
foreach my $node ($publisher, $subscriber)
{
	Items::indexes_are_right($node, 'postgres', 'items', $node->name);
}
foreach my $search (@Items::searches)
{
	is(Items::distances($subscriber, 'postgres', 'items', $search, $Items::by_index), Items::distances($publisher, 'postgres', 'items', $search, $Items::by_index),
		"$search->{kind}: both give the same distances");
}

$subscriber->safe_psql('postgres', 'DROP SUBSCRIPTION s');
$_->stop foreach $subscriber, $publisher;
done_testing();
