# Partitioned tables: one search merges what the indexes of the partitions give, in order.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Items;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('partitions');
$node->init;
$node->append_conf('postgresql.conf', $Items::settings);
$node->start;
$node->safe_psql('postgres', qq{
	CREATE EXTENSION unifdiag;
	$Items::functions
	CREATE TABLE items ($Items::columns) PARTITION BY HASH (id);
	CREATE TABLE items_0 PARTITION OF items FOR VALUES WITH (MODULUS 4, REMAINDER 0);
	CREATE TABLE items_1 PARTITION OF items FOR VALUES WITH (MODULUS 4, REMAINDER 1);
	CREATE TABLE items_2 PARTITION OF items FOR VALUES WITH (MODULUS 4, REMAINDER 2) PARTITION BY HASH (id);
	CREATE TABLE items_2_0 PARTITION OF items_2 FOR VALUES WITH (MODULUS 1, REMAINDER 0);
	INSERT INTO items SELECT $Items::row FROM generate_series(1, 2000) i WHERE satisfies_hash_partition('items'::regclass, 4, 0, i)
		OR satisfies_hash_partition('items'::regclass, 4, 1, i) OR satisfies_hash_partition('items'::regclass, 4, 2, i);
});
Items::create_indexes($node, 'postgres', 'items');
# a partition that comes later
$node->safe_psql('postgres', qq{
	CREATE TABLE items_3 ($Items::columns);
	INSERT INTO items_3 SELECT $Items::row FROM generate_series(1, 2000) i WHERE satisfies_hash_partition('items'::regclass, 4, 3, i);
	ALTER TABLE items ATTACH PARTITION items_3 FOR VALUES WITH (MODULUS 4, REMAINDER 3);
	ANALYZE items;
});
is($node->safe_psql('postgres', 'SELECT count(*) FROM items'), 2000, 'all rows are somewhere');
foreach my $search (@Items::searches)
{
	my $plan = Items::query_plan($node, 'postgres', 'items', $search, $Items::by_index);
	like($plan, qr/Merge Append/, "$search->{kind}: the partitions are merged");
	my @scans = $plan =~ /Index (?:Only )?Scan using/g;
	is(scalar @scans, 4, "$search->{kind}: by an index scan of each");
	unlike($plan, qr/Sort\n/, "$search->{kind}: nothing is sorted");
}
Items::indexes_are_right($node, 'postgres', 'items', 'four partitions');
$node->safe_psql('postgres', 'DELETE FROM items WHERE id % 3 = 0');
$node->safe_psql('postgres', 'VACUUM items');
$node->safe_psql('postgres', "INSERT INTO items SELECT $Items::row FROM generate_series(2001, 2500) i");
Items::indexes_are_right($node, 'postgres', 'items', 'after changes');

$node->stop;
done_testing();
