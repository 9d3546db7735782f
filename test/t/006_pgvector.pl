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

$node->stop;
done_testing();
