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
# pgvector casts vector to real[] implicitly, halfvec only when told to
foreach my $type ('vector', 'halfvec::real[]')
{
	is($node->safe_psql('postgres', "SELECT avg(sketcher_hash(model, $type) <~> sketcher_hash(model, v)) < 0.05 FROM items, models"), 't', "hash $type");
	is($node->safe_psql('postgres', "SELECT (sketcher_info(sketcher_agg($type, 4))).rows FROM items"), 500, "learn from $type");
	is($node->safe_psql('postgres', "SELECT (sketcher_info(sketcher_learn(model, $type))).rows FROM items, models"), 1000, "go on learning from $type");
	is($node->safe_psql('postgres', "SELECT count(code) FROM (SELECT sketcher_stream($type, 4) OVER (ORDER BY id) AS code FROM items) t"), 496, "stream $type");
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

$node->stop;
done_testing();
