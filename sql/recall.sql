-- sketcher_recall: what share of the true neighbours codes find

CREATE TABLE points AS
SELECT i AS id, ARRAY(SELECT sin(i * k) + sin(i * i * 0.1 + k * (i % 9)) FROM generate_series(1, 192) k)::real[] AS v FROM generate_series(1, 200) i;
INSERT INTO points VALUES (201, NULL), (202, NULL);
SELECT sketcher_attach('points', 'v', 'code', 192, auto_refresh => NULL);
CREATE INDEX ON points USING hamming (code);
ANALYZE points;

-- by hand: each row a query, its neighbours counted.  Of rows at the same distance by code any may be candidates: the
-- nearer ones at best, the farther ones at worst
CREATE TABLE pairs AS
SELECT q.id AS query, p.id, bit_count(p.code # q.code) AS bits, (SELECT sqrt(sum((x - y)::float8 ^ 2)) FROM unnest(p.v, q.v) AS e (x, y)) AS distance
FROM points p JOIN points q ON p.id <> q.id WHERE p.v IS NOT NULL AND q.v IS NOT NULL;
CREATE FUNCTION recall_by_hand(k int, candidates int, sign int) RETURNS float8 LANGUAGE sql AS $$
	SELECT count(*) FILTER (WHERE place <= candidates) / (200.0 * k)
	FROM (SELECT rank() OVER (PARTITION BY query ORDER BY distance) AS near,
			row_number() OVER (PARTITION BY query ORDER BY bits, sign * distance) AS place FROM pairs) p
	WHERE near <= k $$;
SELECT k, candidates, recall BETWEEN worst - 1e-9 AND best + 1e-9 AS right, best - worst <= 0.015 AS narrow
FROM (SELECT k, candidates, sketcher_recall('points', 'v', 'code', k, candidates, 200) AS recall,
		recall_by_hand(k, candidates, -1) AS worst, recall_by_hand(k, candidates, 1) AS best
	FROM (VALUES (1, 5), (2, 20), (3, 20), (5, 20)) AS t (k, candidates)) recalls;
-- all rows as candidates find all
SELECT sketcher_recall('points', 'v', 'code', candidates => 199) AS all_rows, sketcher_recall('points', 'v', 'code', 5, 199, 10000) AS all_queries;
-- more candidates find more, and the same queries find the same
SELECT sketcher_recall('points', 'v', 'code', 10, 20) < sketcher_recall('points', 'v', 'code', 10, 100) AS more,
	sketcher_recall('points', 'v', 'code', queries => 7) = sketcher_recall('points', 'v', 'code', queries => 7) AS same;
-- a table of one row, and one of none
CREATE TABLE few AS SELECT v, code FROM points WHERE id = 1;
SELECT sketcher_recall('few', 'v', 'code') AS one;
DELETE FROM few;
SELECT sketcher_recall('few', 'v', 'code') AS none;
-- names that need quotes, vectors of other types, parts
CREATE TABLE "Odd" ("V v" numeric[], "C" bithash(192)) PARTITION BY LIST (("C" IS NULL));
CREATE TABLE odd_1 PARTITION OF "Odd" FOR VALUES IN (false);
INSERT INTO "Odd" SELECT v, code FROM points WHERE v IS NOT NULL;
SELECT sketcher_recall('"Odd"', 'V v', 'C', 5, 199) AS odd;
-- with the caller's rights; rows are told apart by system columns, for which one needs the whole table
\set VERBOSITY terse
CREATE ROLE regress_recall_user;
SET ROLE regress_recall_user;
SELECT sketcher_recall('points', 'v', 'code');
RESET ROLE;
GRANT SELECT ON points TO regress_recall_user;
SET ROLE regress_recall_user;
SELECT sketcher_recall('points', 'v', 'code', candidates => 199);
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
DROP TABLE points, pairs, few, "Odd";
DROP FUNCTION recall_by_hand;
