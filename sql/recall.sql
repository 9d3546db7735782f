-- sketcher_recall: what share of the true neighbours codes find

CREATE TABLE points AS SELECT i AS id, ARRAY[sin(i), cos(i * i), sin(i * 0.7), cos(i * 1.3), sin(i * i * 0.1)]::real[] AS v FROM generate_series(1, 400) i;
INSERT INTO points VALUES (401, NULL), (402, NULL);
SELECT sketcher_attach('points', 'v', 'code', 5, auto_refresh => NULL);
CREATE INDEX ON points USING hamming (code);
ANALYZE points;

-- by hand: each row a query, its neighbours counted one by one
CREATE FUNCTION recall_by_hand(k int, candidates int) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
	q record;
	farthest float8;
	found bigint := 0;
BEGIN
	FOR q IN SELECT id, v, code FROM points WHERE v IS NOT NULL LOOP
		SELECT max(d) INTO farthest FROM (SELECT (SELECT sqrt(sum((x - y)::float8 ^ 2)) FROM unnest(v, q.v) AS e (x, y)) AS d
			FROM points WHERE id <> q.id AND v IS NOT NULL ORDER BY d LIMIT k) near;
		found := found + (SELECT count(*) FROM (SELECT v FROM points WHERE id <> q.id AND code IS NOT NULL ORDER BY bit_count(code # q.code), ctid LIMIT candidates) c
			WHERE (SELECT sqrt(sum((x - y)::float8 ^ 2)) FROM unnest(v, q.v) AS e (x, y)) <= farthest + 1e-6);
	END LOOP;
	RETURN found / (400.0 * k);
END $$;
-- all rows as candidates find all; and those at the last distance of the candidates may be others
SELECT sketcher_recall('points', 'v', 'code', candidates => 399) AS all_rows, sketcher_recall('points', 'v', 'code', 5, 399, 10000) AS all_queries;
SELECT k, candidates, abs(sketcher_recall('points', 'v', 'code', k, candidates, 400) - recall_by_hand(k, candidates)) < 0.03 AS right
FROM (VALUES (1, 10), (5, 50), (10, 100)) AS t (k, candidates);
-- more candidates find more, and the same queries find the same
SELECT sketcher_recall('points', 'v', 'code', 10, 20) < sketcher_recall('points', 'v', 'code', 10, 200) AS more,
	sketcher_recall('points', 'v', 'code', queries => 7) = sketcher_recall('points', 'v', 'code', queries => 7) AS same;
-- a table of one row, and one of none
CREATE TABLE few AS SELECT v, code FROM points WHERE id = 1;
SELECT sketcher_recall('few', 'v', 'code') AS one;
DELETE FROM few;
SELECT sketcher_recall('few', 'v', 'code') AS none;
-- names that need quotes, vectors of other types, parts
CREATE TABLE "Odd" ("V v" numeric[], "C" bithash(5)) PARTITION BY LIST (("C" IS NULL));
CREATE TABLE odd_1 PARTITION OF "Odd" FOR VALUES IN (false);
INSERT INTO "Odd" SELECT v, code FROM points WHERE v IS NOT NULL;
SELECT sketcher_recall('"Odd"', 'V v', 'C', 5, 399) AS odd;
-- with the caller's rights; rows are told apart by system columns, for which one needs the whole table
\set VERBOSITY terse
CREATE ROLE regress_recall_user;
SET ROLE regress_recall_user;
SELECT sketcher_recall('points', 'v', 'code');
RESET ROLE;
GRANT SELECT ON points TO regress_recall_user;
SET ROLE regress_recall_user;
SELECT sketcher_recall('points', 'v', 'code', candidates => 399);
RESET ROLE;
\set VERBOSITY default
-- what cannot be
SELECT sketcher_recall('points', 'v', 'code', 0);
SELECT sketcher_recall('points', 'v', 'code', candidates => 10001);
SELECT sketcher_recall('points', 'v', 'code', queries => -1);
\set VERBOSITY terse
SELECT sketcher_recall('points', 'nothing', 'code');

REVOKE ALL ON points FROM regress_recall_user;
DROP ROLE regress_recall_user;
SELECT sketcher_detach('points', 'code');
DROP TABLE points, few, "Odd";
DROP FUNCTION recall_by_hand;
