# The sketch index on pgvector's types, with pgvector's operators, where pgvector is installed.
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
	CREATE EXTENSION unifdiag_pgvector CASCADE;
	CREATE TABLE items AS SELECT i AS id, a::vector(60) AS v, a::vector(60)::halfvec(60) AS h
	FROM (SELECT i, ARRAY(SELECT sin(i % 29 * k) + cos(i * k + k * k) / 3 FROM generate_series(1, 60) k)::real[] AS a FROM generate_series(1, 3000) i) t;
	INSERT INTO items VALUES (0, array_fill(0, ARRAY[60])::vector, array_fill(0, ARRAY[60])::vector::halfvec), (-1, NULL, NULL);
	CREATE TABLE questions AS SELECT i AS id, ARRAY(SELECT sin(i % 29 * k) + cos(i * k + k * k + 1) / 3 FROM generate_series(1, 60) k)::vector(60) AS v FROM generate_series(1, 20) i;
	ANALYZE items;
});
is($node->safe_psql('postgres', q{SELECT count(*), bool_and(amvalidate(c.oid)) FROM pg_opclass c JOIN pg_am a ON a.oid = c.opcmethod WHERE amname = 'sketch'}),
	'10|t', 'all operator classes are valid');

foreach my $type ('vector', 'halfvec')
{
	my $column = substr($type, 0, 1);
	foreach my $metric ('l2 <->', 'cosine <=>', 'ip <#>')
	{
		my ($name, $operator) = split / /, $metric;
		$node->safe_psql('postgres', "CREATE INDEX items_index ON items USING sketch ($column ${type}_${name}_ops) WITH (bits = 40)");
		my $query = "SELECT id FROM items ORDER BY $column $operator (SELECT v FROM questions WHERE id = 1)::$type LIMIT 10";
		like($node->safe_psql('postgres', "EXPLAIN $query"), qr/Index Scan using items_index/, "$type, $name: the index serves");
		cmp_ok($node->safe_psql('postgres', q{SELECT sketch_recall('items_index', 10, 50)}), '>=', 0.95, "$type, $name: recall");
		is($node->safe_psql('postgres', qq{
			SET enable_seqscan = off; SET enable_sort = off; SET unifdiag.recall = 1;
			CREATE TEMPORARY TABLE by_index AS SELECT q.id, row_number() OVER () AS n, a.d FROM questions q, LATERAL (SELECT $column $operator q.v::$type AS d FROM items ORDER BY $column $operator q.v::$type) a;
			RESET ALL; SET enable_indexscan = off;
			CREATE TEMPORARY TABLE by_sort AS SELECT q.id, row_number() OVER () AS n, a.d FROM questions q, LATERAL (SELECT $column $operator q.v::$type AS d FROM items ORDER BY $column $operator q.v::$type) a;
			SELECT count(*), count(*) FILTER (WHERE i.d IS DISTINCT FROM s.d) FROM by_index i FULL JOIN by_sort s USING (id, n)}),
			'60040|0', "$type, $name: with recall 1 as by a sort");
		$node->safe_psql('postgres', q{SELECT sketch_check('items_index'); DROP INDEX items_index});
	}
}
# objects of the same names in the schema that the extension goes to are not taken for pgvector's
$node->safe_psql('postgres', q{
	CREATE DATABASE trap;
	\c trap
	CREATE EXTENSION unifdiag;
	CREATE EXTENSION vector;
	CREATE SCHEMA trap;
	CREATE FUNCTION trap.vector_to_float4(vector, integer, boolean) RETURNS real[] LANGUAGE sql AS $$ SELECT '{1}'::real[] $$;
	CREATE FUNCTION trap.distance(vector, vector) RETURNS float8 LANGUAGE sql AS $$ SELECT 1::float8 $$;
	CREATE OPERATOR trap.<-> (LEFTARG = vector, RIGHTARG = vector, FUNCTION = trap.distance);
	CREATE EXTENSION unifdiag_pgvector SCHEMA trap;
});
is($node->safe_psql('trap', q{SELECT string_agg(DISTINCT p.pronamespace::regnamespace::text, ',') FROM pg_amproc f JOIN pg_proc p ON p.oid = f.amproc JOIN pg_opfamily o ON o.oid = f.amprocfamily JOIN pg_am a ON a.oid = o.opfmethod WHERE a.amname = 'sketch'}),
	'public', 'support functions are pgvector\'s');
is($node->safe_psql('trap', q{SELECT string_agg(DISTINCT p.oprnamespace::regnamespace::text, ',') FROM pg_amop f JOIN pg_operator p ON p.oid = f.amopopr JOIN pg_opfamily o ON o.oid = f.amopfamily JOIN pg_am a ON a.oid = o.opfmethod WHERE a.amname = 'sketch'}),
	'public', 'operators, too');
is($node->safe_psql('trap', q{SELECT string_agg(DISTINCT opcnamespace::regnamespace::text, ',') FROM pg_opclass WHERE opcname LIKE 'vector%' AND opcmethod = (SELECT oid FROM pg_am WHERE amname = 'sketch')}),
	'trap', 'operator classes go where the extension goes');

# an index that is made before its rows; both kinds of index on one column
$node->safe_psql('postgres', q{
	CREATE TABLE later (LIKE items);
	CREATE INDEX later_sketch ON later USING sketch (v);
	INSERT INTO later SELECT * FROM items;
	SELECT sketch_check('later_sketch');
	CREATE INDEX later_hnsw ON later USING hnsw (v vector_l2_ops);
	ANALYZE later;
});
is($node->safe_psql('postgres', q{SELECT rows, unsketched FROM sketch_info('later_sketch')}), '3001|0', 'made before its rows, it has learnt');
like($node->safe_psql('postgres', q{SET enable_seqscan = off; EXPLAIN SELECT id FROM later ORDER BY v <-> (SELECT v FROM questions LIMIT 1) LIMIT 3}),
	qr/Index Scan using later_(sketch|hnsw)/, 'beside pgvector\'s own index');
my (undef, undef, $error) = $node->psql('postgres', q{ALTER TABLE later ALTER v TYPE vector; INSERT INTO later VALUES (1, '[1,2]')});
like($error, qr/(vector has 2 dimensions, but index "later_sketch" holds vectors of 60 dimensions|expected 60 dimensions)/, 'other dimensions are refused');
(undef, undef, $error) = $node->psql('postgres', q{DROP EXTENSION vector});
like($error, qr/unifdiag_pgvector depends on/, 'the extensions depend on each other');
$node->safe_psql('postgres', q{DROP EXTENSION unifdiag_pgvector CASCADE});
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_class WHERE relname = 'later_sketch'}), '0', 'without the second extension, its indexes are gone');
$node->stop;

done_testing();
