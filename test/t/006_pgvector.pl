# pgvector's types as vectors, by their own casts, where pgvector is installed.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('pgvector');
$node->init;
$node->start;
plan skip_all => 'pgvector is not available in this server'
  unless $node->safe_psql('postgres', q{SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'});

$node->safe_psql('postgres', q{
	CREATE EXTENSION vector;
	CREATE EXTENSION unifdiag;
	CREATE TABLE items AS SELECT i AS id, a AS v, a::vector(8) AS vector, a::vector(8)::halfvec(8) AS halfvec
	FROM (SELECT i, ARRAY(SELECT sin(i * k) * k FROM generate_series(1, 8) k)::real[] AS a FROM generate_series(1, 500) i) t;
	CREATE TABLE models AS SELECT sketcher_agg(v, 4 ORDER BY id) AS model FROM items;
});
# pgvector casts vector to real[] implicitly, halfvec only when told to: there unifdiag_pgvector has aggregates
foreach my $type ('vector', 'halfvec::real[]', 'halfvec')
{
	$node->safe_psql('postgres', 'CREATE EXTENSION unifdiag_pgvector') if $type eq 'halfvec';
	is($node->safe_psql('postgres', "SELECT avg(sketcher_hash(model, $type) <~> sketcher_hash(model, v)) < 0.05 FROM items, models"), 't', "hash $type");
	is($node->safe_psql('postgres', "SELECT (sketcher_info(sketcher_agg($type, 4))).rows FROM items"), 500, "learn from $type");
	is($node->safe_psql('postgres', "SELECT (sketcher_info(sketcher_learn(model, $type))).rows FROM items, models"), 1000, "go on learning from $type");
	is($node->safe_psql('postgres', "SELECT (sketcher_info(sketcher_add(model, $type))).rows FROM items, models LIMIT 1"), 501, "one row more of $type");
	is($node->safe_psql('postgres', "SELECT count(code) FROM (SELECT sketcher_stream($type, 4) OVER (ORDER BY id) AS code FROM items) t"), 496, "stream $type");
	is($node->safe_psql('postgres', "SELECT count(code) FROM (SELECT sketcher_stream(model, $type) OVER (ORDER BY id) AS code FROM items, models) t"), 500, "stream $type by a model");
}

# both extensions have <~> and hamming_distance; each keeps its own
is($node->safe_psql('postgres', q{SELECT B'0101' <~> B'0110', '0101'::bithash <~> '0110', '0101'::bithash <~> B'0110', hamming_distance('0101'::bithash, '0110')}),
	'2|2|2|2', 'distances of bit and bithash side by side');

# the operators of vectors are pgvector's own, whether unifdiag is there or not, and in either order of installation
my $dimensions = '[1,2,3,4,5,6,7,8]';
foreach my $order ('vector unifdiag', 'unifdiag vector')
{
	my ($first, $second) = split / /, $order;

	$node->safe_psql('postgres', "CREATE DATABASE beside");
	$node->safe_psql('beside', qq{
		CREATE EXTENSION $first;
		CREATE EXTENSION $second;
		CREATE TABLE items AS SELECT i AS id, a AS v, a::vector(8) AS vector
		FROM (SELECT i, ARRAY(SELECT sin(i * k) * k FROM generate_series(1, 8) k)::real[] AS a FROM generate_series(1, 500) i) t;
		CREATE INDEX ON items USING hnsw (vector vector_l2_ops);
		ANALYZE items;
	});
	foreach my $operator ('<->', '<=>', '<#>')
	{
		is($node->safe_psql('beside', "SELECT max(abs((vector $operator '$dimensions') - (v $operator '{1,2,3,4,5,6,7,8}'))) < 1e-5 FROM items"),
			't', "$order: arrays have the distances of vectors, $operator");
		# quietly comparing arrays, no index of pgvector's would serve
		foreach my $arguments ("vector $operator v", "v $operator vector", "vector $operator ARRAY[1,2,3,4,5,6,7,8.0]")
		{
			my ($status, $out, $error) = $node->psql('beside', "SELECT $arguments FROM items");

			isnt($status, 0, "$order: $arguments is an error as it is with pgvector alone");
			like($error, qr/operator is not unique/, 'which says so');
		}
	}
	like($node->safe_psql('beside', "SET enable_seqscan = off; EXPLAIN SELECT id FROM items ORDER BY vector <-> '$dimensions' LIMIT 5"),
		qr/items_vector_idx/, "$order: pgvector's index serves a literal");
	like($node->safe_psql('beside', "SET enable_seqscan = off; PREPARE nearest AS SELECT id FROM items ORDER BY vector <-> \$1 LIMIT 5; EXPLAIN EXECUTE nearest('$dimensions')"),
		qr/items_vector_idx/, "$order: and a parameter");
	$node->safe_psql('postgres', "DROP DATABASE beside");
}

# so are those of bit: each statement has the type and the plan that it has with pgvector alone
my @statements = (
	q{SELECT bits <~> B'1111000011110000' FROM items ORDER BY 1 LIMIT 3},
	q{SELECT bits <~> '1111000011110000' FROM items ORDER BY 1 LIMIT 3},
	q{SELECT bits <~> '1111000011110000'::varbit FROM items ORDER BY 1 LIMIT 3},
	q{SELECT B'1111000011110000' <~> bits FROM items ORDER BY 1 LIMIT 3},
	q{SELECT id FROM items ORDER BY varbits <~> bits, id LIMIT 3},
	q{SELECT id FROM items ORDER BY varbits <~> '1111000011110000', id LIMIT 3},
	q{SELECT id FROM items ORDER BY varbits::bit(16) <~> '1111000011110000', id LIMIT 3},
	q{SELECT a.id, b.id FROM items a, LATERAL (SELECT id FROM items b ORDER BY a.bits <~> b.bits LIMIT 2) b WHERE a.id < 4 ORDER BY 1, 2},
	q{SELECT id FROM items ORDER BY bits <%> '1111000011110000', id LIMIT 3},
	q{SELECT hamming_distance(bits, '1111000011110000') FROM items WHERE id < 5},
	q{SELECT hamming_distance(bits, varbits::bit(16)) FROM items WHERE id < 5},
	q{SELECT pg_typeof(hamming_distance('101', '100')), hamming_distance('101', '100'), hamming_distance('', ''), hamming_distance('101', '100'::varbit)},
	q{SELECT pg_typeof(bits <~> bits), pg_typeof(varbits <~> varbits) FROM items LIMIT 1},
	q{SELECT bits & '1111111100000000', bits | bits, ~ bits, bits # bits, bits || bits, substring(bits, 2, 3), set_bit(bits, 1, 0), length(varbits), bit_count(bits) FROM items WHERE id = 3},
	q{SELECT bit_and(bits), bit_or(bits), bit_xor(bits) FROM items});
my $bits_setup = q{
	CREATE TABLE items AS SELECT i AS id, ('x' || left(md5(i::text), 4))::bit(16) AS bits, ('x' || left(md5(i::text), 4))::varbit AS varbits FROM generate_series(1, 500) i;
	CREATE INDEX hnsw_bits ON items USING hnsw (bits bit_hamming_ops);
	ANALYZE items;};
my %answers;
foreach my $order ('vector', 'vector unifdiag unifdiag_pgvector', 'unifdiag vector unifdiag_pgvector')
{
	$node->safe_psql('postgres', 'CREATE DATABASE beside');
	$node->safe_psql('beside', join('', map { "CREATE EXTENSION $_;" } split / /, $order) . $bits_setup);
	my @answer = map { $node->safe_psql('beside', "SET enable_seqscan = off; EXPLAIN (VERBOSE, COSTS off) $_; $_") } @statements;
	$answers{$order} = \@answer;
	foreach my $i (0 .. $#statements)
	{
		is($answer[$i], $answers{vector}[$i], "$order: $statements[$i]") if $order ne 'vector';
	}
	if ($order ne 'vector')
	{
		# each index on bit serves both operators
		$node->safe_psql('beside', 'DROP INDEX hnsw_bits; CREATE INDEX ours ON items USING hamming (bits);');
		foreach my $type ('bit(16)', 'bithash')
		{
			my $value = "'1111000011110000'::$type";
			my $expected = $node->safe_psql('beside', "SET enable_indexscan = off; SELECT d FROM (SELECT bits <~> $value AS d FROM items) t ORDER BY d LIMIT 50");

			like($node->safe_psql('beside', "SET enable_seqscan = off; EXPLAIN SELECT id FROM items ORDER BY bits <~> $value LIMIT 5"),
				qr/using ours/, "$order: the hamming index serves bit <~> $type");
			is($node->safe_psql('beside', "SET enable_seqscan = off; SET enable_sort = off; SELECT bits <~> $value FROM items ORDER BY bits <~> $value LIMIT 50"),
				$expected, "$order: exactly, bit <~> $type");
			is($node->safe_psql('beside', "SELECT pg_typeof(bits <~> $value) FROM items LIMIT 1"),
				$type eq 'bithash' ? 'integer' : 'double precision', "$order: bit <~> $type has its own type");
		}
		is($node->safe_psql('beside', "SELECT amvalidate(oid) FROM pg_opclass WHERE opcname = 'bit_pgvector_ops'"), 't', "$order: its operator class holds together");
		$node->safe_psql('beside', 'DROP EXTENSION unifdiag_pgvector');
		unlike($node->safe_psql('beside', "SET enable_seqscan = off; EXPLAIN SELECT id FROM items ORDER BY bits <~> B'1111000011110000' LIMIT 5"),
			qr/using ours/, "$order: no longer without unifdiag_pgvector");
		$node->safe_psql('beside', 'CREATE EXTENSION unifdiag_pgvector; CREATE INDEX ON items USING hamming (bits bit_pgvector_ops)');
	}
	$node->safe_psql('postgres', 'DROP DATABASE beside');
}

$node->stop;
done_testing();
