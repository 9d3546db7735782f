-- what attach, refresh, detach and the triggers refuse, and who may do what
CREATE TABLE items (id int, v real[], note text, number int, short bithash(4));
INSERT INTO items SELECT i, ARRAY[sin(i), cos(i), i % 7, i % 5] FROM generate_series(1, 50) i;

SELECT sketcher_attach(NULL, 'v', 'code', 2);
SELECT sketcher_attach(0, 'v', 'code', 2);
SELECT sketcher_attach('items', 'missing', 'code', 2);
SELECT sketcher_attach('items', 'ctid', 'code', 2);
SELECT sketcher_attach('items', 'note', 'code', 2);
SELECT sketcher_attach('items', 'v', 'number', 2);
SELECT sketcher_attach('items', 'v', 'short', 2);
SELECT sketcher_attach('items', 'v', 'xmin', 2);
SELECT sketcher_attach('items', 'v', 'code', 0);
SELECT sketcher_attach('items', 'v', 'code', 5);
SELECT sketcher_attach('items', 'v', 'code', 2, dims => 3);
SELECT sketcher_attach('items', 'v', 'code', 2, dims => 0);
SELECT sketcher_attach('items', 'v', 'code', 2, rotation => 'round');
SELECT sketcher_attach('items', 'v', 'code', 2, forgetting => 2);
CREATE VIEW a_view AS SELECT * FROM items;
SELECT sketcher_attach('a_view', 'v', 'code', 2);
SELECT sketcher_attach('items', 'v', 'code', 2, auto_refresh => 2);
SELECT sketcher_attach('items', 'v', 'code', 2, backfill => NULL);
CREATE TABLE generated (a real, v real[] GENERATED ALWAYS AS (ARRAY[a, a, a, a]) STORED);
SELECT sketcher_attach('generated', 'v', 'code', 2);
DROP TABLE generated;
CREATE TABLE parted (id int, v real[]) PARTITION BY RANGE (id);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (100);
SELECT sketcher_attach('parted_1', 'v', 'code', 2);
CREATE FOREIGN DATA WRAPPER nowhere;
CREATE SERVER nowhere FOREIGN DATA WRAPPER nowhere;
CREATE FOREIGN TABLE parted_2 PARTITION OF parted FOR VALUES FROM (100) TO (200) SERVER nowhere;
SELECT sketcher_attach('parted', 'v', 'code', 2);
ALTER TABLE parted DETACH PARTITION parted_2;
SELECT sketcher_attach('parted', 'v', 'code', 2, auto_refresh => NULL);
ALTER TABLE parted_2 ADD code bithash(2);
ALTER TABLE parted ATTACH PARTITION parted_2 FOR VALUES FROM (100) TO (200);
INSERT INTO parted VALUES (1, '{1,2,3,4}');
CALL sketcher_refresh('parted', 'code');
\set VERBOSITY terse
DROP TABLE parted;
DROP FOREIGN DATA WRAPPER nowhere CASCADE;
\set VERBOSITY default
CREATE TABLE items_code_model ();
\set VERBOSITY terse
SELECT sketcher_attach('items', 'v', 'code', 2);
\set VERBOSITY default
DROP TABLE items_code_model;
SELECT sketcher_detach('items', 'short');
SELECT sketcher_detach('items', 'missing');
CALL sketcher_refresh('items', 'short');

SELECT sketcher_attach('items', 'v', 'code', 2, auto_refresh => NULL);
SELECT sketcher_attach('items', 'v', 'code', 2);
INSERT INTO items VALUES (1, '{1,2,3}');
INSERT INTO items VALUES (1, '{1,2,3,NaN}');
INSERT INTO items VALUES (1, '{{1,2},{3,4}}');
CALL sketcher_refresh('items', 'code', -1);
CALL sketcher_refresh('items', 'code', 'NaN');
CALL sketcher_refresh('items', 'code', batch => 0);
CALL sketcher_refresh('items', 'code', NULL);
CALL sketcher_refresh('items', 'code', batch => NULL);
CALL sketcher_refresh('items', NULL);
CALL sketcher_refresh(NULL, 'code');
BEGIN;
CALL sketcher_refresh('items', 'code');
ROLLBACK;
\set VERBOSITY terse
ALTER TABLE items DROP COLUMN v;
ALTER TABLE items DROP COLUMN code;
DROP TABLE items_code_model;
\set VERBOSITY default
SELECT sketcher_hash('items'::regclass, '{1,2,3,4}'::real[]);
SELECT sketcher_hash('items_code_model'::regclass, '{1,2,3}'::real[]);
SELECT sketcher_hash(0::regclass, '{1,2,3}'::real[]);

-- vectors of two sizes, before there is a model that could tell which is right
CREATE TABLE sizes (id int, v real[]);
SELECT sketcher_attach('sizes', 'v', 'code', 2, auto_refresh => NULL);
SELECT sketcher_hash('sizes_code_model'::regclass, '{1,2,3}'::real[]);
INSERT INTO sizes SELECT i, ARRAY[i, i * i, 1] FROM generate_series(1, 5) i;
INSERT INTO sizes VALUES (6, '{1,2,3,4}');
CALL sketcher_refresh('sizes', 'code');
SELECT count(code) FROM sizes;
INSERT INTO sizes VALUES (7, '{1,2,3,4}');
DROP TABLE sizes;
CREATE TABLE sizes (id int, v real[]);
SELECT sketcher_attach('sizes', 'v', 'code', 2, dims => 3, auto_refresh => NULL);
INSERT INTO sizes VALUES (1, '{1,2,3,4}');
DROP TABLE sizes;

-- triggers by hand
CREATE TABLE other (v real[], code bithash(2), number int, short bithash(1));
CREATE TRIGGER t BEFORE INSERT ON other FOR EACH ROW EXECUTE FUNCTION sketcher_hash_trigger('items_code_model');
INSERT INTO other VALUES ('{1,2,3,4}');
DROP TRIGGER t ON other;
CREATE TRIGGER t AFTER INSERT ON other FOR EACH ROW WHEN (sketcher_columns('items_code_model', NEW.v, NEW.code)) EXECUTE FUNCTION sketcher_hash_trigger();
INSERT INTO other VALUES ('{1,2,3,4}');
DROP TRIGGER t ON other;
CREATE TRIGGER t BEFORE INSERT ON other FOR EACH ROW WHEN (sketcher_columns('items', NEW.v, NEW.code)) EXECUTE FUNCTION sketcher_hash_trigger();
INSERT INTO other VALUES ('{1,2,3,4}');
DROP TRIGGER t ON other;
CREATE TRIGGER t BEFORE INSERT ON other FOR EACH ROW WHEN (sketcher_columns(NULL, NEW.v, NEW.code)) EXECUTE FUNCTION sketcher_hash_trigger();
INSERT INTO other VALUES ('{1,2,3,4}');
DROP TRIGGER t ON other;
CREATE TRIGGER t BEFORE INSERT ON other FOR EACH ROW WHEN (sketcher_columns('items_code_model', NEW.v, '01')) EXECUTE FUNCTION sketcher_hash_trigger();
INSERT INTO other VALUES ('{1,2,3,4}');
DROP TRIGGER t ON other;
CREATE TRIGGER t BEFORE INSERT ON other FOR EACH ROW WHEN (sketcher_columns('items_code_model', NEW.v, NEW.short)) EXECUTE FUNCTION sketcher_hash_trigger();
INSERT INTO other VALUES ('{1,2,3,4}');
DROP TRIGGER t ON other;
CREATE TRIGGER t BEFORE INSERT ON other FOR EACH ROW WHEN (sketcher_columns('items_code_model', NEW.number, NEW.code)) EXECUTE FUNCTION sketcher_hash_trigger();
INSERT INTO other (number) VALUES (1);
DROP TABLE other;

-- what the owner writes into the model table is checked
BEGIN;
DELETE FROM items_code_model;
INSERT INTO items VALUES (51, '{1,2,3,4}');
ROLLBACK;
BEGIN;
UPDATE items_code_model SET dims = 0;
INSERT INTO items VALUES (51, '{1,2,3,4}');
ROLLBACK;
BEGIN;
UPDATE items_code_model SET auto_refresh = 'NaN';
INSERT INTO items VALUES (51, '{1,2,3,4}');
ROLLBACK;
BEGIN;
UPDATE items_code_model SET walk_table = 0;
INSERT INTO items VALUES (51, '{1,2,3,4}');
ROLLBACK;
BEGIN;
UPDATE items_code_model SET published = (SELECT sketcher_agg(v, 3) FROM items);
INSERT INTO items VALUES (51, '{1,2,3,4}');
ROLLBACK;
BEGIN;
UPDATE items_code_model SET published = (SELECT sketcher_agg(v[1:3], 2) FROM items);
INSERT INTO items VALUES (51, '{1,2,3,4}');
ROLLBACK;
BEGIN;
ALTER TABLE items_code_model RENAME dims TO dimensions;
INSERT INTO items VALUES (51, '{1,2,3,4}');
ROLLBACK;
UPDATE items_code_model SET published = (SELECT sketcher_agg(v, 3) FROM items);
CALL sketcher_refresh('items', 'code');
UPDATE items_code_model SET published = (SELECT sketcher_agg(v[1:3], 2) FROM items);
CALL sketcher_refresh('items', 'code');
UPDATE items_code_model SET published = NULL, walk_table = 0, walk_file = 0, walk_page = 0;
CALL sketcher_refresh('items', 'code');
UPDATE items_code_model SET published = learning, walk_table = NULL;
CREATE RULE nothing AS ON UPDATE TO items_code_model DO INSTEAD NOTHING;
CALL sketcher_refresh('items', 'code');
DROP RULE nothing ON items_code_model;

-- codes that somebody keeps from being written are counted
CREATE TABLE kept (id int, v real[], code bithash(2));
INSERT INTO kept SELECT i, ARRAY[sin(i), cos(i), i % 7, i % 5] FROM generate_series(1, 50) i;
CREATE TRIGGER changes_only BEFORE UPDATE ON kept FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger();
SELECT sketcher_attach('kept', 'v', 'code', 2, auto_refresh => NULL);
CALL sketcher_refresh('kept', 'code');
SELECT count(code) FROM kept;
ALTER TABLE kept DISABLE TRIGGER zz_unifdiag_code_hash;
UPDATE kept SET code = NULL;
ALTER TABLE kept ENABLE ALWAYS TRIGGER zz_unifdiag_code_hash;
CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER keep BEFORE UPDATE ON kept FOR EACH ROW WHEN (OLD.id <= 20) EXECUTE FUNCTION keep();
CALL sketcher_refresh('kept', 'code');
CREATE RULE keep AS ON UPDATE TO kept DO INSTEAD NOTHING;
CALL sketcher_refresh('kept', 'code');
DROP TABLE kept;
DROP FUNCTION keep;

-- a commit that fails ends a refresh, and leaves nothing locked
CREATE TABLE refused (id int, v real[]);
INSERT INTO refused SELECT i, ARRAY[sin(i), cos(i), i % 7, i % 5] FROM generate_series(1, 50) i;
SELECT sketcher_attach('refused', 'v', 'code', 2, backfill => false, auto_refresh => NULL);
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$;
CREATE CONSTRAINT TRIGGER refuse AFTER UPDATE ON refused DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse();
CALL sketcher_refresh('refused', 'code');
SELECT mode FROM pg_locks WHERE locktype = 'relation' AND mode = 'ShareUpdateExclusiveLock' AND pid = pg_backend_pid();
DROP TRIGGER refuse ON refused;
CALL sketcher_refresh('refused', 'code');
DROP TABLE refused;
DROP FUNCTION refuse;

-- only the owner attaches, refreshes, detaches; whoever may insert inserts, and no more
CREATE ROLE regress_unifdiag_owner;
CREATE ROLE regress_unifdiag_writer;
CREATE SCHEMA regress_owned AUTHORIZATION regress_unifdiag_owner;
GRANT USAGE ON SCHEMA regress_owned TO regress_unifdiag_writer;
SET ROLE regress_unifdiag_owner;
CREATE TABLE regress_owned.items (id int, v real[]);
INSERT INTO regress_owned.items SELECT i, ARRAY[sin(i), cos(i), i % 7, i % 5] FROM generate_series(1, 50) i;
GRANT INSERT ON regress_owned.items TO regress_unifdiag_writer;
SET ROLE regress_unifdiag_writer;
SELECT sketcher_attach('regress_owned.items', 'v', 'code', 2);
RESET ROLE;
SELECT sketcher_attach('regress_owned.items', 'v', 'code', 2, auto_refresh => NULL);
SELECT relname, relowner::regrole FROM pg_class WHERE relnamespace = 'regress_owned'::regnamespace AND relkind = 'r' ORDER BY 1;
SET ROLE regress_unifdiag_writer;
INSERT INTO regress_owned.items VALUES (51, '{1,2,3,4}');
CALL sketcher_refresh('regress_owned.items', 'code');
SELECT sketcher_detach('regress_owned.items', 'code');
SELECT count(*) FROM regress_owned.items_code_model;
UPDATE regress_owned.items_code_model SET published = learning;
DELETE FROM regress_owned.items_code_model;
SELECT sketcher_hash('regress_owned.items_code_model'::regclass, '{1,2,3,4}'::real[]);
CREATE TEMP TABLE mine (v real[], code bithash);
CREATE TRIGGER t BEFORE INSERT OR UPDATE ON mine FOR EACH ROW WHEN (sketcher_columns('regress_owned.items_code_model', NEW.v, NEW.code)) EXECUTE FUNCTION sketcher_hash_trigger();
INSERT INTO mine VALUES ('{1,2,3,4}');
DROP TABLE mine;
SELECT sketcher_hash_trigger();
RESET ROLE;
SELECT count(code), count(*) FROM regress_owned.items;

-- who may read a model makes codes with it, and has no say in it; rights are looked at in each statement
GRANT SELECT ON regress_owned.items_code_model TO regress_unifdiag_writer;
CREATE SCHEMA regress_other AUTHORIZATION regress_unifdiag_writer;
SET ROLE regress_unifdiag_writer;
CREATE TABLE regress_other.mine (v real[], code bithash);
CREATE TRIGGER t BEFORE INSERT OR UPDATE ON regress_other.mine FOR EACH ROW WHEN (sketcher_columns('regress_owned.items_code_model', NEW.v, NEW.code)) EXECUTE FUNCTION sketcher_hash_trigger();
INSERT INTO regress_other.mine VALUES ('{1,2,3,4}');
SELECT code = sketcher_hash('regress_owned.items_code_model'::regclass, v) AS hashed FROM regress_other.mine;
CALL sketcher_refresh('regress_other.mine', 'code');
SELECT sketcher_detach('regress_other.mine', 'code');
RESET ROLE;
ALTER TABLE regress_owned.items_code_model ENABLE ROW LEVEL SECURITY;
SET ROLE regress_unifdiag_writer;
SELECT count(*) FROM regress_owned.items_code_model;
INSERT INTO regress_other.mine VALUES ('{1,2,3,4}');
RESET ROLE;
ALTER TABLE regress_owned.items_code_model DISABLE ROW LEVEL SECURITY;
REVOKE SELECT ON regress_owned.items_code_model FROM regress_unifdiag_writer;
SET ROLE regress_unifdiag_writer;
INSERT INTO regress_other.mine VALUES ('{1,2,3,4}');
DROP TABLE regress_other.mine;

-- nothing changes owners on the word of a row
CREATE TABLE regress_other.mine (id int, v real[]);
SELECT sketcher_attach('regress_other.mine', 'v', 'code', 2, dims => 4, auto_refresh => NULL);
CREATE TABLE regress_other.yours (id int, v real[]);
UPDATE regress_other.mine_code_model SET target = 'regress_owned.items';
INSERT INTO regress_other.mine VALUES (1, '{1,2,3,4}');
CALL sketcher_refresh('regress_other.mine', 'code');
UPDATE regress_other.mine_code_model SET target = 'regress_other.mine';
RESET ROLE;
ALTER TABLE regress_other.mine OWNER TO CURRENT_USER;
\set VERBOSITY terse
CALL sketcher_refresh('regress_other.mine', 'code');
SELECT sketcher_detach('regress_other.mine', 'code');
\set VERBOSITY default
INSERT INTO regress_other.mine VALUES (1, '{1,2,3,4}');
SELECT relname, relowner::regrole = CURRENT_USER::regrole AS ours FROM pg_class WHERE relname IN ('mine', 'mine_code_model') ORDER BY 1;
SET client_min_messages = warning;
DROP SCHEMA regress_other CASCADE;
RESET client_min_messages;

-- a hostile schema in front of everything, and temporary objects of the same names
CREATE SCHEMA regress_hostile AUTHORIZATION regress_unifdiag_writer;
SET ROLE regress_unifdiag_writer;
SET search_path = pg_temp, regress_hostile, pg_catalog, public;
CREATE TABLE regress_hostile.items_code_model (published text, learning text);
CREATE TEMP TABLE items_code_model (published text, learning text);
CREATE FUNCTION regress_hostile.hack() RETURNS void LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'hostile code runs as %', current_user; END $$;
CREATE FUNCTION regress_hostile.sketcher_hash(regclass, real[]) RETURNS bithash LANGUAGE plpgsql AS $$ BEGIN PERFORM regress_hostile.hack(); END $$;
CREATE FUNCTION regress_hostile.sketcher_learn_trans(text, public.sketcher, real[]) RETURNS text LANGUAGE plpgsql AS $$ BEGIN PERFORM regress_hostile.hack(); END $$;
CREATE AGGREGATE regress_hostile.sketcher_learn(public.sketcher, real[]) (SFUNC = regress_hostile.sketcher_learn_trans, STYPE = text);
CREATE FUNCTION regress_hostile.unnest(anyarray) RETURNS SETOF anyelement LANGUAGE plpgsql AS $$ BEGIN PERFORM regress_hostile.hack(); END $$;
CREATE FUNCTION regress_hostile.equal(tid, tid) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN PERFORM regress_hostile.hack(); END $$;
CREATE OPERATOR regress_hostile.= (LEFTARG = tid, RIGHTARG = tid, FUNCTION = regress_hostile.equal);
CREATE FUNCTION regress_hostile.sketcher_hash_trigger() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM regress_hostile.hack(); END $$;
CREATE DOMAIN regress_hostile.sketcher AS text;
CREATE DOMAIN regress_hostile.float4 AS text;
INSERT INTO regress_owned.items VALUES (52, '{1,2,3,4}');
RESET ROLE;
SET client_min_messages = warning;
CALL public.sketcher_refresh('regress_owned.items', 'code');
SELECT public.sketcher_detach('regress_owned.items', 'code');
SELECT public.sketcher_attach('regress_owned.items', 'v', 'code', 2, auto_refresh => NULL);
INSERT INTO regress_owned.items VALUES (53, '{1,2,3,5}');
CALL public.sketcher_refresh('regress_owned.items', 'code');
RESET client_min_messages;
RESET search_path;
SELECT (sketcher_info(learning)).rows FROM regress_owned.items_code_model;
SELECT count(code), count(*) FROM regress_owned.items;
SET client_min_messages = warning;
DROP SCHEMA regress_hostile CASCADE;
DROP TABLE pg_temp.items_code_model;
RESET client_min_messages;

-- what the owner has defined runs with the owner's rights, whoever calls, and leaves no settings behind
SET ROLE regress_unifdiag_owner;
CREATE TABLE regress_owned.seen (who name);
CREATE FUNCTION regress_owned.spy() RETURNS trigger LANGUAGE plpgsql
	AS $$ BEGIN INSERT INTO regress_owned.seen VALUES (current_user); PERFORM set_config('search_path', 'regress_owned', false); RETURN new; END $$;
CREATE TRIGGER spy BEFORE UPDATE ON regress_owned.items FOR EACH ROW WHEN (new.code IS NOT NULL) EXECUTE FUNCTION regress_owned.spy();
ALTER TABLE regress_owned.items DISABLE TRIGGER zz_unifdiag_code_hash;
UPDATE regress_owned.items SET code = NULL;
ALTER TABLE regress_owned.items ENABLE ALWAYS TRIGGER zz_unifdiag_code_hash;
DELETE FROM regress_owned.seen;
RESET ROLE;
SET client_min_messages = warning;
CALL sketcher_refresh('regress_owned.items', 'code');
RESET client_min_messages;
SHOW search_path;
SELECT who, count(*) FROM regress_owned.seen GROUP BY 1;
DROP TRIGGER spy ON regress_owned.items;
CREATE CONSTRAINT TRIGGER spy AFTER UPDATE ON regress_owned.items DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION regress_owned.spy();
BEGIN;
SELECT sketcher_detach('regress_owned.items', 'code');
SELECT sketcher_attach('regress_owned.items', 'v', 'code', 2);
ROLLBACK;
DROP TRIGGER spy ON regress_owned.items;
DROP FUNCTION regress_owned.spy;
DROP TABLE regress_owned.seen;

-- so does a cast, wherever it is reached from; its result and the right to it are looked at
SET ROLE regress_unifdiag_owner;
CREATE TYPE regress_owned.triple AS (a real, b real, c real);
CREATE TABLE regress_owned.seen (who name, super bool);
GRANT INSERT ON regress_owned.seen TO public;
CREATE FUNCTION regress_owned.to_array(t regress_owned.triple) RETURNS real[] LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO regress_owned.seen SELECT current_user, rolsuper FROM pg_roles WHERE rolname = current_user;
	RETURN CASE WHEN t.a <> 13 THEN ARRAY[t.a, t.b, t.c] END;
END $$;
CREATE CAST (regress_owned.triple AS real[]) WITH FUNCTION regress_owned.to_array(regress_owned.triple);
CREATE TABLE regress_owned.triples (id int, v regress_owned.triple);
INSERT INTO regress_owned.triples SELECT i, ROW(i, i % 7, i % 3)::regress_owned.triple FROM generate_series(1, 12) i;
RESET ROLE;
SELECT sketcher_attach('regress_owned.triples', 'v', 'code', 2, auto_refresh => NULL);
INSERT INTO regress_owned.triples VALUES (14, '(14,1,1)');
SET client_min_messages = warning;
CALL sketcher_refresh('regress_owned.triples', 'code');
RESET client_min_messages;
SELECT who, super, count(*) > 12 AS many FROM regress_owned.seen GROUP BY 1, 2;
SELECT count(*) FROM regress_owned.triples WHERE code IS DISTINCT FROM sketcher_hash('regress_owned.triples_code_model'::regclass, v::real[]);
-- and in what it calls by their bare names nobody else has a say
CREATE SCHEMA regress_hostile AUTHORIZATION regress_unifdiag_writer;
GRANT USAGE ON SCHEMA regress_hostile TO public;
GRANT INSERT ON regress_owned.triples TO regress_unifdiag_writer;
SET ROLE regress_unifdiag_writer;
CREATE FUNCTION regress_hostile.unequal(real, integer) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'hostile code runs as %', current_user; END $$;
CREATE OPERATOR regress_hostile.<> (LEFTARG = real, RIGHTARG = integer, FUNCTION = regress_hostile.unequal);
SET search_path = regress_hostile, pg_catalog, public;
INSERT INTO regress_owned.triples VALUES (16, '(16,1,1)');
SHOW search_path;
RESET search_path;
RESET ROLE;
SET client_min_messages = warning;
DROP SCHEMA regress_hostile CASCADE;
RESET client_min_messages;
\set VERBOSITY terse
INSERT INTO regress_owned.triples VALUES (13, '(13,1,1)'); -- the cast returns null
ALTER TABLE regress_owned.triples DISABLE TRIGGER ALL;
INSERT INTO regress_owned.triples VALUES (13, '(13,1,1)');
ALTER TABLE regress_owned.triples ENABLE ALWAYS TRIGGER zz_unifdiag_code_hash;
CALL sketcher_refresh('regress_owned.triples', 'code');
SELECT sketcher_attach('regress_owned.triples', 'v', 'again', 2);
SET ROLE regress_unifdiag_owner;
REVOKE EXECUTE ON FUNCTION regress_owned.to_array FROM public, regress_unifdiag_owner;
RESET ROLE;
INSERT INTO regress_owned.triples VALUES (15, '(15,1,1)');
\set VERBOSITY default
DROP TABLE regress_owned.triples;
DROP TABLE regress_owned.seen;

-- another owner does not get the model table along, and is told
ALTER TABLE regress_owned.items OWNER TO regress_unifdiag_writer;
SET ROLE regress_unifdiag_writer;
INSERT INTO regress_owned.items VALUES (54, '{1,2,3,6}');
CALL sketcher_refresh('regress_owned.items', 'code');
RESET ROLE;
ALTER TABLE regress_owned.items_code_model OWNER TO regress_unifdiag_writer;
SET ROLE regress_unifdiag_writer;
SET client_min_messages = warning;
CALL sketcher_refresh('regress_owned.items', 'code');
RESET client_min_messages;
RESET ROLE;
SELECT count(*) FROM regress_owned.items WHERE code IS DISTINCT FROM sketcher_hash('regress_owned.items_code_model'::regclass, v);

-- where triggers cannot be made, the message says what to do instead
CREATE FUNCTION no_triggers() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'triggers are not supported here'; END $$;
CREATE EVENT TRIGGER no_triggers ON ddl_command_start WHEN TAG IN ('CREATE TRIGGER') EXECUTE FUNCTION no_triggers();
SELECT sketcher_attach('items', 'v', 'second', 2);
DROP EVENT TRIGGER no_triggers;
DROP FUNCTION no_triggers;

-- policies are for others; if they are forced on the owner, nothing is done behind them
ALTER TABLE regress_owned.items ENABLE ROW LEVEL SECURITY;
CREATE POLICY half ON regress_owned.items USING (id % 2 = 0);
SET client_min_messages = warning;
CALL sketcher_refresh('regress_owned.items', 'code');
SELECT count(*) FROM regress_owned.items WHERE code IS DISTINCT FROM sketcher_hash('regress_owned.items_code_model'::regclass, v);
RESET client_min_messages;
GRANT INSERT ON regress_owned.items TO regress_unifdiag_owner;
SET ROLE regress_unifdiag_owner;
INSERT INTO regress_owned.items VALUES (101, '{1,2,3,4}');
INSERT INTO regress_owned.items VALUES (102, '{1,2,3,4}');
RESET ROLE;
SET client_min_messages = warning;
CALL sketcher_refresh('regress_owned.items', 'code');
RESET client_min_messages;
ALTER TABLE regress_owned.items FORCE ROW LEVEL SECURITY;
CALL sketcher_refresh('regress_owned.items', 'code');
SELECT sketcher_attach('regress_owned.items', 'v', 'second', 2);
SET client_min_messages = warning;
ALTER TABLE regress_owned.items_code_model ENABLE ROW LEVEL SECURITY;
ALTER TABLE regress_owned.items_code_model FORCE ROW LEVEL SECURITY;
SET ROLE regress_unifdiag_writer;
SELECT sketcher_hash('regress_owned.items_code_model'::regclass, '{1,2,3,4}'::real[]);
RESET ROLE;
SET client_min_messages = notice;

-- a partition that belongs to somebody else: the cast of the column's type does not run with his rights
CREATE ROLE regress_unifdiag_admin SUPERUSER;
GRANT CREATE ON SCHEMA regress_owned TO regress_unifdiag_admin;
SET ROLE regress_unifdiag_owner;
CREATE TYPE regress_owned.pair AS (x real, y real);
CREATE FUNCTION regress_owned.pair_vector(regress_owned.pair) RETURNS real[] LANGUAGE plpgsql AS $$ BEGIN
	IF current_user <> 'regress_unifdiag_owner' THEN RAISE EXCEPTION 'runs as %', current_user; END IF;
	RETURN ARRAY[($1).x, ($1).y];
END $$;
CREATE CAST (regress_owned.pair AS real[]) WITH FUNCTION regress_owned.pair_vector(regress_owned.pair);
CREATE TABLE regress_owned.pairs (k int, v regress_owned.pair) PARTITION BY LIST (k);
CREATE TABLE regress_owned.pairs_2 PARTITION OF regress_owned.pairs FOR VALUES IN (2) PARTITION BY LIST (k);
SELECT sketcher_attach('regress_owned.pairs', 'v', 'code', 2, auto_refresh => NULL);
SET ROLE regress_unifdiag_admin;
CREATE TABLE regress_owned.pairs_1 PARTITION OF regress_owned.pairs FOR VALUES IN (1);
CREATE TABLE regress_owned.pairs_2_2 PARTITION OF regress_owned.pairs_2 FOR VALUES IN (2);
SET ROLE regress_unifdiag_owner;
INSERT INTO regress_owned.pairs SELECT k, ROW(i, k)::regress_owned.pair FROM generate_series(1, 5) i, generate_series(1, 2) k;
-- nor are its rows changed with the rights of the owner of the whole
CALL sketcher_refresh('regress_owned.pairs', 'code');
RESET ROLE;
CALL sketcher_refresh('regress_owned.pairs', 'code');
SELECT sketcher_attach('regress_owned.pairs', 'v', 'second', 2);
ALTER TABLE regress_owned.pairs_1 OWNER TO regress_unifdiag_owner;
ALTER TABLE regress_owned.pairs_2_2 OWNER TO regress_unifdiag_owner;
SET client_min_messages = warning;
CALL sketcher_refresh('regress_owned.pairs', 'code');
SELECT count(code) FROM regress_owned.pairs;
RESET client_min_messages;
REVOKE ALL ON SCHEMA regress_owned FROM regress_unifdiag_admin;
DROP ROLE regress_unifdiag_admin;

-- an error while codes are made ends the statement, and nothing else
CREATE TABLE guarded (id int, v real[]);
INSERT INTO guarded SELECT i, ARRAY[sin(i), cos(i), i % 7, i % 5] FROM generate_series(1, 50) i;
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$;
CREATE TRIGGER refuse BEFORE UPDATE ON guarded FOR EACH ROW EXECUTE FUNCTION refuse();
\set VERBOSITY terse
SELECT sketcher_attach('guarded', 'v', 'code', 2);
SELECT count(*) FROM guarded;
BEGIN;
SAVEPOINT before;
SELECT sketcher_attach('guarded', 'v', 'code', 2);
ROLLBACK TO before;
SELECT count(*) FROM guarded;
COMMIT;
\set VERBOSITY default
DROP TABLE guarded;
DROP FUNCTION refuse;

-- a first vector with fewer dimensions than bits does not keep others from being learnt
CREATE TABLE short_first (v real[]);
SELECT sketcher_attach('short_first', 'v', 'code', 2, auto_refresh => NULL);
INSERT INTO short_first VALUES ('{1}'), ('{1,2,3}'), ('{2,1,5}'), ('{0,1,0}');
CALL sketcher_refresh('short_first', 'code');
SELECT v, code IS NOT NULL AS has_code FROM short_first;
DROP TABLE short_first;

-- a value that its cast refuses: the error says in which row
CREATE TABLE numbers (v numeric[]);
INSERT INTO numbers VALUES ('{1,2,3}'), ('{1e300,2,3}');
SELECT sketcher_attach('numbers', 'v', 'code', 2, backfill => false, auto_refresh => NULL);
CALL sketcher_refresh('numbers', 'code');
DROP TABLE numbers;
SET client_min_messages = warning;
DROP SCHEMA regress_owned CASCADE;
DROP TABLE items CASCADE;
DROP ROLE regress_unifdiag_owner, regress_unifdiag_writer;
SELECT relname FROM pg_class WHERE relname LIKE 'items%';
