-- living in a table: codes and model are kept by triggers
SET client_min_messages = warning; -- how many codes a refresh changes depends on rounding

CREATE FUNCTION vec(i int) RETURNS real[] LANGUAGE sql IMMUTABLE
	AS 'SELECT ARRAY(SELECT sin(i % 10 * k) * 3 + sin(i::float8 * k * k) / 5 FROM generate_series(1, 16) k)::real[]';

-- rows that are there are learnt from and hashed; the column is made
CREATE TABLE items (id int PRIMARY KEY, v real[], note text);
INSERT INTO items SELECT i, vec(i) FROM generate_series(1, 500) i;
INSERT INTO items VALUES (0, NULL);
SELECT sketcher_attach('items', 'v', 'code', 8);
SELECT count(*), count(code), min(length(code)), max(length(code)) FROM items;
SELECT target, pending, bits, dims, tracker, rotation, stable, center, forgetting, seed, generation,
	(sketcher_info(published)).rows AS published, (sketcher_info(learning)).rows AS learning
FROM items_code_model;

-- every way in
INSERT INTO items VALUES (501, vec(501)), (502, vec(502));
INSERT INTO items SELECT i, vec(i) FROM generate_series(503, 510) i;
COPY items (id, v) FROM stdin;
511	{1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}
512	{16,2,3,4,5,6,7,8,9,10,11,12,13,14,15,1}
513	\N
\.
INSERT INTO items VALUES (1, vec(2)) ON CONFLICT DO NOTHING;
INSERT INTO items VALUES (1, vec(2)) ON CONFLICT (id) DO UPDATE SET v = excluded.v;
CREATE VIEW wrong AS SELECT id FROM items WHERE code IS DISTINCT FROM sketcher_hash('items_code_model'::regclass, v);
SELECT count(*) FROM wrong;
SELECT sum(rows) AS pending FROM items_code_pending;

-- a vector that stays is no work, one that changes is hashed and learnt, a code set by hand is made right
UPDATE items SET note = 'noted';
UPDATE items SET v = vec(id) WHERE id BETWEEN 2 AND 510;
UPDATE items SET v = v, code = code;
SELECT sum(rows) AS pending FROM items_code_pending;
UPDATE items SET v = vec(id + 3) WHERE id BETWEEN 2 AND 5;
UPDATE items SET code = NULL WHERE id = 6;
UPDATE items SET code = ~ code::bit(8) WHERE id = 7;
UPDATE items SET v = NULL WHERE id = 8;
UPDATE items SET v = vec(8) WHERE id = 8;
SELECT sum(rows) AS pending FROM items_code_pending;
SELECT count(*) FROM wrong;

-- what is rolled back is not learnt
BEGIN;
INSERT INTO items SELECT i, vec(i) FROM generate_series(1001, 1010) i;
ROLLBACK;
BEGIN;
INSERT INTO items SELECT i, vec(i) FROM generate_series(1001, 1010) i;
SAVEPOINT a;
INSERT INTO items SELECT i, vec(i) FROM generate_series(1011, 1300) i;
SAVEPOINT b;
INSERT INTO items SELECT i, vec(i) FROM generate_series(1301, 1310) i;
RELEASE b;
ROLLBACK TO a;
INSERT INTO items SELECT i, vec(i) FROM generate_series(1011, 1015) i;
SAVEPOINT c;
INSERT INTO items SELECT i, vec(i) FROM generate_series(1016, 1200) i;
SAVEPOINT d;
INSERT INTO items SELECT i, vec(i) FROM generate_series(1201, 1300) i;
RELEASE d;
RELEASE c;
COMMIT;
DO $$
BEGIN
	FOR i IN 2000..2099 LOOP
		BEGIN
			INSERT INTO items VALUES (i, vec(i));
			IF i % 2 = 0 THEN
				RAISE 'no';
			END IF;
		EXCEPTION WHEN raise_exception THEN
		END;
	END LOOP;
END
$$;

-- 500 from the start, 12 inserted, 6 changed, 300 and 50 inserted
CALL sketcher_refresh('items', 'code');
SELECT (sketcher_info(learning)).rows AS learning, (sketcher_info(published)).rows AS published, generation, walk_table FROM items_code_model;
SELECT count(*) FROM items_code_pending;
SELECT count(*) FROM wrong;

-- a threshold below which nothing is done
INSERT INTO items SELECT i, vec(i) FROM generate_series(3001, 3010) i;
CALL sketcher_refresh('items', 'code', min_drift => 1);
SELECT (sketcher_info(learning)).rows - (sketcher_info(published)).rows AS ahead, generation FROM items_code_model;
CALL sketcher_refresh('items', 'code', min_drift => 0, batch => 7);
SELECT (sketcher_info(learning)).rows - (sketcher_info(published)).rows AS ahead, generation FROM items_code_model;
SELECT count(*) FROM wrong;

-- replication roles and TRUNCATE change nothing
SET session_replication_role = replica;
INSERT INTO items VALUES (4001, vec(4001));
RESET session_replication_role;
SELECT code IS NOT NULL AS hashed FROM items WHERE id = 4001;
TRUNCATE items;
INSERT INTO items VALUES (1, vec(1));
SELECT count(*) FROM wrong;
INSERT INTO items SELECT i, vec(i) FROM generate_series(2, 300) i;

-- renaming
ALTER TABLE items RENAME TO things;
ALTER TABLE things RENAME COLUMN v TO w;
ALTER TABLE things RENAME COLUMN code TO c;
INSERT INTO things SELECT i, vec(i) FROM generate_series(301, 310) i;
CALL sketcher_refresh('things', 'c');
SELECT count(*) FROM wrong;
SELECT (sketcher_info(learning)).rows FROM items_code_model;
ALTER TABLE things RENAME TO items;
ALTER TABLE items RENAME COLUMN w TO v;
ALTER TABLE items RENAME COLUMN c TO code;

-- a second column, of the same vectors
SELECT sketcher_attach('items', 'v', 'more', 12, rotation => 'random', seed => 3, forgetting => 0.999);
INSERT INTO items SELECT i, vec(i) FROM generate_series(311, 320) i;
CALL sketcher_refresh('items', 'more');
SELECT rotation, forgetting, seed, (sketcher_info(learning)).rows FROM items_more_model;
SELECT count(*) FROM items WHERE more IS DISTINCT FROM sketcher_hash('items_more_model'::regclass, v) OR length(more) <> 12;
SELECT sketcher_detach('items', 'more');
SELECT count(more) FROM items;
SELECT tgname FROM pg_trigger WHERE tgrelid = 'items'::regclass ORDER BY 1;

-- the same model by hand for another table, and more than one row a statement
CREATE TABLE archive (id int, v real[], code bithash);
CREATE TRIGGER hash BEFORE INSERT OR UPDATE OF v, code ON archive FOR EACH ROW EXECUTE FUNCTION sketcher_hash_trigger('items_code_model');
CREATE TRIGGER learn AFTER INSERT OR UPDATE OF v ON archive FOR EACH ROW EXECUTE FUNCTION sketcher_learn_trigger('public.items_code_model');
INSERT INTO archive SELECT i, vec(i) FROM generate_series(1, 10) i;
SELECT count(*) FROM archive WHERE code IS DISTINCT FROM sketcher_hash('items_code_model'::regclass, v);
CALL sketcher_refresh('items', 'code');
SELECT (sketcher_info(learning)).rows FROM items_code_model;
\set VERBOSITY terse
SELECT sketcher_detach('items', 'code'); -- not while the archive uses it
\set VERBOSITY default
DROP TABLE archive;

-- the table takes all along
DROP VIEW wrong;
DROP TABLE items;
SELECT relname FROM pg_class WHERE relname LIKE 'items%';

-- names
CREATE SCHEMA "a ""schema";
CREATE TABLE "a ""schema"."it's a table" (id int, "the vector" float8[]);
SELECT sketcher_attach('"a ""schema"."it''s a table"', 'the vector', 'the "code"', 4);
INSERT INTO "a ""schema"."it's a table" SELECT i, vec(i) FROM generate_series(1, 3) i;
CALL sketcher_refresh('"a ""schema"."it''s a table"', 'the "code"'); -- too few
INSERT INTO "a ""schema"."it's a table" SELECT i, vec(i) FROM generate_series(4, 20) i;
SELECT count("the ""code""") FROM "a ""schema"."it's a table";
CALL sketcher_refresh('"a ""schema"."it''s a table"', 'the "code"');
SELECT count("the ""code""") FROM "a ""schema"."it's a table";
DROP SCHEMA "a ""schema" CASCADE;
SELECT relname FROM pg_class WHERE relname LIKE 'it''s%';

-- partitions, with columns in another order, old and new
CREATE TABLE parted (id int, v real[]) PARTITION BY RANGE (id);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (100);
CREATE TABLE parted_2 (dropped int, v real[], id int);
ALTER TABLE parted_2 DROP COLUMN dropped;
ALTER TABLE parted ATTACH PARTITION parted_2 FOR VALUES FROM (100) TO (200);
INSERT INTO parted SELECT i, vec(i) FROM generate_series(1, 150) i;
SELECT sketcher_attach('parted', 'v', 'code', 8);
CREATE TABLE parted_3 PARTITION OF parted FOR VALUES FROM (200) TO (400);
INSERT INTO parted SELECT i, vec(i) FROM generate_series(151, 300) i;
INSERT INTO parted_2 (id, v) VALUES (199, vec(199));
CREATE TABLE parted_4 (LIKE parted);
INSERT INTO parted_4 SELECT i, vec(i) FROM generate_series(400, 410) i;
ALTER TABLE parted ATTACH PARTITION parted_4 FOR VALUES FROM (400) TO (500);
SELECT count(*) - count(code) AS without_code FROM parted;
CALL sketcher_refresh('parted', 'code', batch => 10);
SELECT tableoid::regclass, count(*), count(code) FROM parted GROUP BY 1 ORDER BY 1;
SELECT count(*) FROM parted WHERE code IS DISTINCT FROM sketcher_hash('parted_code_model'::regclass, v);
SELECT (sketcher_info(learning)).rows FROM parted_code_model;
UPDATE parted SET id = id + 300 WHERE id = 150; -- to another partition: counts as inserted
TRUNCATE parted_1;
COPY parted (id, v) FROM stdin;
1	{1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}
450	{16,2,3,4,5,6,7,8,9,10,11,12,13,14,15,1}
\.
SELECT count(*) FROM parted WHERE code IS DISTINCT FROM sketcher_hash('parted_code_model'::regclass, v);
CALL sketcher_refresh('parted', 'code');
SELECT (sketcher_info(learning)).rows FROM parted_code_model;
DROP TABLE parted;
SELECT relname FROM pg_class WHERE relname LIKE 'parted%';

DROP FUNCTION vec;
