# Tables with sketch indexes under load, for the tests of crashes, replicas and concurrency.
package SketchLoad;
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HammingLoad;
use Test::More;

# A table whose index is there from the start, and is emptied now and then, so that it learns again;
# and one whose index was built from rows, which are stored out of line.
sub create
{
	my ($node) = @_;
	$node->safe_psql('postgres', q{
		CREATE EXTENSION unifdiag;
		CREATE FUNCTION random_vector(dims int) RETURNS real[] LANGUAGE sql VOLATILE AS
			$$ SELECT array_agg((sin(k * cluster) + random() / 4)::real) FROM generate_series(1, dims) k, (SELECT (random() * 20)::int AS cluster OFFSET 0) c $$;
		CREATE TABLE late (id serial, v real[]) WITH (autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0);
		CREATE INDEX late_v ON late USING sketch (v) WITH (bits = 20);
		CREATE TABLE built (id serial, v real[]) WITH (autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0);
		ALTER TABLE built ALTER v SET STORAGE EXTERNAL;
		INSERT INTO built (v) SELECT random_vector(600) FROM generate_series(1, 1500);
		CREATE INDEX built_v ON built USING sketch (v real_cosine_ops) WITH (bits = 64);
	});
	return;
}

%HammingLoad::scripts = (%HammingLoad::scripts,
	# with records of our own, and with generic ones
	sketch_insert => q{
		SELECT set_config('unifdiag.private_interfaces', (random() < 0.5)::text, false);
		INSERT INTO late (v) SELECT CASE WHEN random() < 0.95 THEN random_vector(24) END FROM generate_series(1, 100);
		INSERT INTO built (v) VALUES (random_vector(600)), (NULL), (array_fill(0::real, ARRAY[600]));
	},
	sketch_update => q{
		UPDATE late SET v = random_vector(24) WHERE id = ANY (ARRAY(SELECT id FROM late ORDER BY random() LIMIT 5 FOR UPDATE SKIP LOCKED));
		UPDATE built SET v = random_vector(600) WHERE id = ANY (ARRAY(SELECT id FROM built ORDER BY random() LIMIT 2 FOR UPDATE SKIP LOCKED));
	},
	sketch_delete => q{
		DELETE FROM late WHERE id = ANY (ARRAY(SELECT id FROM late ORDER BY random() LIMIT 20 FOR UPDATE SKIP LOCKED));
		DELETE FROM built WHERE id = ANY (ARRAY(SELECT id FROM built WHERE id < (SELECT max(id) - 3000 FROM built) FOR UPDATE SKIP LOCKED));
	},
	# VACUUM forgets the model, if nobody adds rows before it comes.  One client at a time: two could wait for each other
	sketch_empty => q{
		SELECT pg_advisory_lock(1);
		DELETE FROM late;
		SELECT pg_advisory_unlock(1);
		VACUUM (INDEX_CLEANUP on) late;
	},
	sketch_rollback => q{
		BEGIN;
		INSERT INTO late (v) SELECT random_vector(24) FROM generate_series(1, 300);
		ROLLBACK;
	},
	# by the index and without it, in one snapshot: the same rows, and with recall 1 in the same order
	sketch_search => q{
		SELECT random_vector(24) AS q \gset
		SELECT random_vector(600) AS l \gset
		BEGIN ISOLATION LEVEL REPEATABLE READ;
		SET LOCAL enable_seqscan = off;
		SET LOCAL enable_sort = off;
		SELECT count(*) AS n, coalesce(sum(hashint4(id)), 0) AS rows FROM (SELECT id FROM late ORDER BY v <-> ':q') q \gset
		SELECT count(*) AS nb, coalesce(sum(hashint4(id)), 0) AS rows_built FROM (SELECT id FROM built ORDER BY v <=> ':l') q \gset
		SET LOCAL unifdiag.recall = 1;
		SELECT coalesce(md5(string_agg(d::text, ',')), 'none') AS distances FROM (SELECT v <-> ':q' AS d FROM late ORDER BY v <-> ':q') q \gset
		SET LOCAL enable_indexscan = off;
		SET LOCAL enable_indexonlyscan = off;
		SET LOCAL enable_seqscan = on;
		SET LOCAL enable_sort = on;
		SELECT 1 / (count(*) = :n AND coalesce(sum(hashint4(id)), 0) = :rows AND coalesce(md5(string_agg(d::text, ',' ORDER BY d)), 'none') = ':distances')::int
			FROM (SELECT id, v <-> ':q' AS d FROM late) AS q;
		SELECT 1 / (count(*) = :nb AND coalesce(sum(hashint4(id)), 0) = :rows_built)::int FROM built;
		COMMIT;
	},
	sketch_build => q{
		CREATE INDEX another_sketch_:client_id ON late USING sketch (v real_ip_ops) WITH (bits = 10);
		DROP INDEX another_sketch_:client_id;
	},
	sketch_vacuum => q{
		VACUUM late;
		VACUUM built;
	},
);

# Indexes are consistent, and give the answers that a sequential scan with a sort gives.
sub is_sound
{
	my ($node, $name) = @_;
	my $answer = $node->safe_psql('postgres', q{
		SELECT sketch_check(indexrelid) FROM pg_index i JOIN pg_class c ON c.oid = indexrelid JOIN pg_am a ON a.oid = relam
		WHERE amname = 'sketch' AND indisvalid;
		CREATE TEMPORARY TABLE questions AS SELECT i, random_vector(24) AS late, random_vector(600) AS built FROM generate_series(1, 5) i;
		CREATE TEMPORARY TABLE answers (by_index bool, i int, distances text, rows bigint);
		SET enable_sort = off;
		SET enable_seqscan = off;
		SET unifdiag.recall = 1;
		INSERT INTO answers (by_index, i, distances) SELECT true, i, (SELECT string_agg(d::text, ',') FROM (SELECT v <-> q.late AS d FROM late ORDER BY v <-> q.late) s) FROM questions q;
		SET unifdiag.recall = 0.9;
		UPDATE answers a SET rows = (SELECT sum(hashint4(id)) FROM (SELECT id FROM built ORDER BY v <=> q.built) s) FROM questions q WHERE q.i = a.i;
		RESET ALL;
		SET enable_indexscan = off;
		SET enable_indexonlyscan = off;
		INSERT INTO answers SELECT false, i, (SELECT string_agg(d::text, ',' ORDER BY d) FROM (SELECT v <-> q.late AS d FROM late) s), (SELECT sum(hashint4(id)) FROM built) FROM questions q;
		SELECT count(*) FROM answers a JOIN answers b ON a.i = b.i AND a.by_index AND NOT b.by_index
			AND a.distances IS NOT DISTINCT FROM b.distances AND a.rows IS NOT DISTINCT FROM b.rows;
	});
	$answer =~ s/\s//g;
	is($answer, '5', $name);
	return;
}

1;
