-- living in a table: codes and model are kept by triggers
SET client_min_messages = warning; -- how many codes a refresh changes depends on rounding

CREATE FUNCTION vec(i int) RETURNS real[] LANGUAGE sql IMMUTABLE
	AS 'SELECT ARRAY(SELECT sin(i % 10 * k) * 3 + sin(i::float8 * k * k) / 5 FROM generate_series(1, 16) k)::real[]';

-- rows that are there are learnt from and hashed; the column is made
CREATE TABLE items (id int PRIMARY KEY, v real[], note text);
INSERT INTO items SELECT i, vec(i) FROM generate_series(1, 500) i;
INSERT INTO items VALUES (0, NULL);
SELECT sketcher_attach('items', 'v', 'code', 8, auto_refresh => NULL);
SELECT count(*), count(code), min(length(code)), max(length(code)) FROM items;
SELECT target, dims, auto_refresh, generation, walk_table,
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

-- a vector that changes is hashed, a code set by hand is made right
UPDATE items SET note = 'noted';
UPDATE items SET v = vec(id) WHERE id BETWEEN 2 AND 510;
UPDATE items SET v = v, code = code;
UPDATE items SET v = vec(id + 3) WHERE id BETWEEN 2 AND 5;
UPDATE items SET code = NULL WHERE id = 6;
UPDATE items SET code = ~ code::bit(8) WHERE id = 7;
UPDATE items SET v = NULL WHERE id = 8;
UPDATE items SET v = vec(8) WHERE id = 8;
SELECT count(*) FROM wrong;

-- a vector that another trigger sets
CREATE FUNCTION set_vector() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NEW.note LIKE 'vector %' THEN
		NEW.v := vec(substr(NEW.note, 8)::int);
	END IF;
	RETURN NEW;
END $$;
CREATE TRIGGER set_vector BEFORE INSERT OR UPDATE ON items FOR EACH ROW EXECUTE FUNCTION set_vector();
INSERT INTO items (id, note) VALUES (600, 'vector 17');
UPDATE items SET note = 'vector 18' WHERE id IN (10, 600);
SELECT id, v = vec(18) AS set, code = sketcher_hash('items_code_model'::regclass, vec(18)) AS hashed FROM items WHERE id IN (10, 600) ORDER BY id;
DROP TRIGGER set_vector ON items;
SELECT count(*) FROM wrong;

-- what is rolled back is not learnt, in transactions and parts of them
CALL sketcher_refresh('items', 'code');
SELECT (sketcher_info(learning)).rows AS before FROM items_code_model \gset
BEGIN;
INSERT INTO items SELECT i, vec(i) FROM generate_series(1001, 1010) i;
ROLLBACK;
BEGIN;
INSERT INTO items SELECT i, vec(i) FROM generate_series(1001, 1010) i;
SAVEPOINT a;
INSERT INTO items SELECT i, vec(i) FROM generate_series(1011, 1300) i;
ROLLBACK TO a;
INSERT INTO items SELECT i, vec(i) FROM generate_series(1011, 1015) i;
SAVEPOINT c;
INSERT INTO items SELECT i, vec(i) FROM generate_series(1016, 1300) i;
RELEASE c;
COMMIT;
CALL sketcher_refresh('items', 'code');
SELECT (sketcher_info(learning)).rows - :before AS learnt, (sketcher_info(published)).rows - :before AS published, walk_table FROM items_code_model;
SELECT count(*) FROM wrong;

-- codes that a refresh writes are not new rows, nor is anything else
CALL sketcher_refresh('items', 'code');
SELECT (sketcher_info(learning)).rows - :before AS learnt FROM items_code_model;

-- a threshold below which nothing is done
INSERT INTO items SELECT i, vec(i) FROM generate_series(3001, 3010) i;
CALL sketcher_refresh('items', 'code', min_drift => 1);
SELECT (sketcher_info(learning)).rows - (sketcher_info(published)).rows AS ahead, generation FROM items_code_model;
CALL sketcher_refresh('items', 'code', min_drift => 0, batch => 7);
SELECT (sketcher_info(learning)).rows - (sketcher_info(published)).rows AS ahead, generation FROM items_code_model;
SELECT count(*) FROM wrong;

-- rows that came past the trigger get their codes, whatever the threshold
ALTER TABLE items DISABLE TRIGGER zz_unifdiag_code_hash;
INSERT INTO items SELECT i, vec(i) FROM generate_series(3011, 3020) i;
ALTER TABLE items ENABLE ALWAYS TRIGGER zz_unifdiag_code_hash;
CALL sketcher_refresh('items', 'code', min_drift => 1);
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
ALTER TABLE things RENAME TO items;
ALTER TABLE items RENAME COLUMN w TO v;
ALTER TABLE items RENAME COLUMN c TO code;

-- a second column, of the same vectors
SELECT sketcher_attach('items', 'v', 'more', 12, rotation => 'random', seed => 3, forgetting => 0.999, auto_refresh => NULL);
INSERT INTO items SELECT i, vec(i) FROM generate_series(311, 320) i;
CALL sketcher_refresh('items', 'more');
SELECT i.rotation, i.forgetting, i.seed, i.rows FROM items_more_model, sketcher_info(learning) i;
SELECT count(*) FROM items WHERE more IS DISTINCT FROM sketcher_hash('items_more_model'::regclass, v) OR length(more) <> 12;
SELECT sketcher_detach('items', 'more');
SELECT count(more) FROM items;
SELECT tgname FROM pg_trigger WHERE tgrelid = 'items'::regclass ORDER BY 1;

-- the same model by hand for another table
CREATE TABLE archive (id int, v real[], code bithash);
CREATE TRIGGER hash BEFORE INSERT OR UPDATE ON archive FOR EACH ROW
	WHEN (sketcher_columns('items_code_model', NEW.v, NEW.code)) EXECUTE FUNCTION sketcher_hash_trigger();
INSERT INTO archive SELECT i, vec(i) FROM generate_series(1, 10) i;
SELECT count(*) FROM archive WHERE code IS DISTINCT FROM sketcher_hash('items_code_model'::regclass, v);
\set VERBOSITY terse
SELECT sketcher_detach('items', 'code'); -- not while the archive uses it
CALL sketcher_refresh('archive', 'code'); -- nor is it the archive's
\set VERBOSITY default
DROP TABLE archive;

-- the table takes all along
DROP VIEW wrong;
DROP TABLE items;
SELECT relname FROM pg_class WHERE relname LIKE 'items%';

-- rows that are there are left to a refresh, and so are the dimensions
CREATE TABLE later (id int, v real[]);
INSERT INTO later SELECT i, vec(i) FROM generate_series(1, 100) i;
INSERT INTO later VALUES (101, '{1,2,3}'), (102, '{1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,nan}');
SELECT sketcher_attach('later', 'v', 'code', 8, backfill => false, auto_refresh => NULL);
SELECT count(code) FROM later;
CALL sketcher_refresh('later', 'code');
SELECT count(code), count(*) FILTER (WHERE code IS NULL) AS without FROM later;
SELECT dims, (sketcher_info(learning)).rows FROM later_code_model;
INSERT INTO later VALUES (103, '{1,2,3}');
ALTER TABLE later DISABLE TRIGGER zz_unifdiag_code_hash;
UPDATE later SET code = '00000000' WHERE id > 100; -- codes of what is no vector
ALTER TABLE later ENABLE ALWAYS TRIGGER zz_unifdiag_code_hash;
CALL sketcher_refresh('later', 'code');
SELECT count(code), count(*) FILTER (WHERE code IS NULL) AS without FROM later;
DROP TABLE later;

-- what comes after the attaching, in the same statement or transaction, is learnt, and what was there once only
CREATE TABLE at_once AS SELECT i AS id, vec(i) AS v FROM generate_series(1, 50) i;
DO $$ BEGIN
	PERFORM sketcher_attach('at_once', 'v', 'code', 8, auto_refresh => NULL);
	INSERT INTO at_once SELECT i, vec(i) FROM generate_series(51, 80) i;
END $$;
CALL sketcher_refresh('at_once', 'code');
SELECT (sketcher_info(learning)).rows FROM at_once_code_model;
BEGIN;
SELECT sketcher_attach('at_once', 'v', 'more', 8, auto_refresh => NULL);
INSERT INTO at_once SELECT i, vec(i) FROM generate_series(81, 90) i;
COMMIT;
CALL sketcher_refresh('at_once', 'more');
SELECT (sketcher_info(learning)).rows FROM at_once_more_model;
DROP TABLE at_once;

-- vectors that are rows: not null, whatever their fields are
CREATE TYPE pair AS (x real, y real);
CREATE FUNCTION pair_vector(p pair) RETURNS real[] LANGUAGE plpgsql AS $$ BEGIN RETURN ARRAY[p.x, coalesce(p.y, 0)]; END $$;
CREATE CAST (pair AS real[]) WITH FUNCTION pair_vector(pair);
CREATE TABLE pairs AS SELECT i AS id, ROW(i % 7, CASE WHEN i % 2 = 0 THEN i % 5 END)::pair AS v FROM generate_series(1, 20) i;
SELECT sketcher_attach('pairs', 'v', 'code', 2, auto_refresh => NULL);
SELECT count(code) FROM pairs;
DROP TABLE pairs;
DROP TYPE pair CASCADE;

-- tables that inherit have their own codes
CREATE TABLE parent (id int, v real[], code bithash(8));
CREATE TABLE child () INHERITS (parent);
INSERT INTO parent SELECT i, vec(i) FROM generate_series(1, 50) i;
INSERT INTO child SELECT i, vec(i), '01010101' FROM generate_series(1, 5) i;
SELECT sketcher_attach('parent', 'v', 'code', 8, auto_refresh => NULL);
CALL sketcher_refresh('parent', 'code');
SELECT count(*) AS right FROM ONLY parent WHERE code = sketcher_hash('parent_code_model'::regclass, v);
SELECT count(*) AS untouched FROM child WHERE code = '01010101';
DROP TABLE parent CASCADE;

-- vectors of a type with a cast, passed by value
CREATE TYPE kind AS ENUM ('small', 'large', 'other');
CREATE FUNCTION kind_vector(kind) RETURNS real[] LANGUAGE sql IMMUTABLE
	AS $$ SELECT CASE $1 WHEN 'small' THEN '{1,2,3,4}'::real[] WHEN 'large' THEN '{5,1,2,7}' ELSE '{0,3,3,1}' END $$;
CREATE CAST (kind AS real[]) WITH FUNCTION kind_vector(kind);
CREATE TABLE kinds (id int, v kind);
INSERT INTO kinds SELECT i, (enum_range(NULL::kind))[1 + i % 3] FROM generate_series(1, 20) i;
SELECT sketcher_attach('kinds', 'v', 'code', 2, auto_refresh => NULL);
UPDATE kinds SET id = id + 1;
UPDATE kinds SET v = 'other' WHERE id < 5;
CALL sketcher_refresh('kinds', 'code');
SELECT count(code), count(*) FILTER (WHERE code IS DISTINCT FROM sketcher_hash('kinds_code_model'::regclass, v::real[])) AS wrong FROM kinds;
DROP TABLE kinds;
DROP TYPE kind CASCADE;

-- temporary tables
CREATE TEMPORARY TABLE passing (id int, v real[]) ON COMMIT DELETE ROWS;
SELECT sketcher_attach('passing', 'v', 'code', 4);
BEGIN;
INSERT INTO passing SELECT i, vec(i) FROM generate_series(1, 10) i;
SELECT count(*), count(code) FROM passing;
COMMIT;
DROP TABLE passing;
SELECT relname FROM pg_class WHERE relname LIKE 'passing%';

-- names
CREATE SCHEMA "a ""schema";
CREATE TABLE "a ""schema"."it's a table" (id int, "the vector" float8[]);
SELECT sketcher_attach('"a ""schema"."it''s a table"', 'the vector', 'the "code"', 4, auto_refresh => NULL);
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
SELECT sketcher_attach('parted', 'v', 'code', 8, auto_refresh => NULL);
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
UPDATE parted SET id = id + 300 WHERE id = 150; -- to another partition
TRUNCATE parted_1;
COPY parted (id, v) FROM stdin;
1	{1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}
450	{16,2,3,4,5,6,7,8,9,10,11,12,13,14,15,1}
\.
SELECT count(*) FROM parted WHERE code IS DISTINCT FROM sketcher_hash('parted_code_model'::regclass, v);
CALL sketcher_refresh('parted', 'code');
SELECT (sketcher_info(learning)).rows FROM parted_code_model;
-- a partition that comes with rows older than the last learning: they are learnt, once
CREATE TABLE parted_9 (id int, v real[], code bithash(8));
INSERT INTO parted_9 SELECT i, vec(i) FROM generate_series(901, 1000) i;
CALL sketcher_refresh('parted', 'code');
SELECT (sketcher_info(learning)).rows AS before FROM parted_code_model \gset
ALTER TABLE parted ATTACH PARTITION parted_9 FOR VALUES FROM (900) TO (1001);
CALL sketcher_refresh('parted', 'code');
CALL sketcher_refresh('parted', 'code');
SELECT (sketcher_info(learning)).rows - :before AS learnt FROM parted_code_model;
SELECT count(*) FROM parted WHERE code IS DISTINCT FROM sketcher_hash('parted_code_model'::regclass, v);
-- what this server has not written yet, another one has: nothing of it counts as learnt
SELECT (sketcher_info(learning)).rows AS before FROM parted_code_model \gset
UPDATE parted_code_model SET learnt = '3:9000000000000000:';
INSERT INTO parted SELECT i, vec(i) FROM generate_series(21, 30) i;
CALL sketcher_refresh('parted', 'code');
SELECT (sketcher_info(learning)).rows - :before = (SELECT count(v) FROM parted) AS all_learnt FROM parted_code_model;
DROP TABLE parted;
SELECT relname FROM pg_class WHERE relname LIKE 'parted%';

-- recall of a table whose name is any, and without the rows of its children, which have no codes of its model
CREATE TABLE q (v real[]);
INSERT INTO q SELECT vec(i) FROM generate_series(1, 200) i;
SELECT sketcher_attach('q', 'v', 'code', 8, auto_refresh => NULL);
CREATE TABLE child () INHERITS (q);
INSERT INTO child SELECT vec(i) FROM generate_series(1, 200) i;
SELECT sketcher_recall('q', 'v', 'code', candidates => 1000);
DROP TABLE q CASCADE;

DROP FUNCTION vec;
