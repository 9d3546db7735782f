# A table of vectors and codes, and the searches in it that the tests of other engines make.
package Items;

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

# What every server needs, and the table's columns and rows.
our $functions = q{
	CREATE FUNCTION vector_of(i int) RETURNS real[] LANGUAGE sql IMMUTABLE AS
		$$ SELECT array_agg((sin(i * k * 0.7) * (17 - k) + sin(i % 10 * k))::real ORDER BY k) FROM generate_series(1, 16) k $$;
	CREATE FUNCTION code_of(i int) RETURNS bithash LANGUAGE sql IMMUTABLE AS
		$$ SELECT ('x' || left(md5(i::text), 16))::bit(64)::bithash $$;
};
our $columns = 'id int, v real[], code bithash(64)';
our $row = 'i, vector_of(i), code_of(i)';

# The kinds of index: how each is made and checked, and a search that it serves.
our @searches = (
	{
		kind => 'hamming',
		index => 'USING hamming (code)',
		order => "code <~> '" . '0110' x 16 . "'::bithash",
		check => 'hamming_check',
	},
	{
		kind => 'sketch',
		index => 'USING sketch (v)',
		order => "v <-> '{" . join(',', map { $_ % 5 - 2 } 1 .. 16) . "}'::real[]",
		check => 'sketch_check',
	},
);

# for postgresql.conf: answers that can be compared with a sequential scan's
our $settings = "unifdiag.recall = 1\n";

# Creates an index of each kind on the table.
sub create_indexes
{
	my ($node, $database, $table) = @_;
	foreach my $search (@searches)
	{
		$node->safe_psql($database, "CREATE INDEX ${table}_$search->{kind} ON $table $search->{index}");
	}
	return;
}

# The least distances, in order.
sub distances
{
	my ($node, $database, $table, $search, $settings) = @_;
	return $node->safe_psql($database, "$settings; SELECT round(($search->{order})::numeric, 4) FROM $table ORDER BY $search->{order} LIMIT 50");
}

sub query_plan
{
	my ($node, $database, $table, $search, $settings) = @_;
	return $node->safe_psql($database, "$settings; EXPLAIN (VERBOSE, COSTS off) SELECT id FROM $table ORDER BY $search->{order} LIMIT 50");
}

our $by_index = 'SET enable_seqscan = off; SET enable_bitmapscan = off';
our $by_sort = 'SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off';

# Each kind of index is used, sound, and gives the distances of a sequential scan with a sort.
sub indexes_are_right
{
	my ($node, $database, $table, $name) = @_;
	foreach my $search (@searches)
	{
		my $index = "${table}_$search->{kind}";
		like(query_plan($node, $database, $table, $search, $by_index), qr/Index (Only )?Scan using \S*$search->{kind}|Index (Only )?Scan using \S*_idx/,
			"$name: $search->{kind} is used");
		is(distances($node, $database, $table, $search, $by_index), distances($node, $database, $table, $search, $by_sort),
			"$name: $search->{kind} gives the right distances");
		$node->safe_psql($database, qq{
			SELECT $search->{check}(relid) FROM pg_partition_tree('$index') WHERE isleaf
			UNION ALL SELECT $search->{check}(oid) FROM pg_class WHERE oid = '$index'::regclass AND relkind = 'i' AND NOT relispartition});
	}
	return;
}

1;
