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
CREATE TEMP TABLE temporary (v real[]);
SELECT sketcher_attach('temporary', 'v', 'code', 2);
CREATE TABLE items_code_model ();
\set VERBOSITY terse
SELECT sketcher_attach('items', 'v', 'code', 2);
\set VERBOSITY default
DROP TABLE items_code_model;
SELECT sketcher_detach('items', 'short');
SELECT sketcher_detach('items', 'missing');
CALL sketcher_refresh('items', 'short');

SELECT sketcher_attach('items', 'v', 'code', 2);
SELECT sketcher_attach('items', 'v', 'code', 2);
INSERT INTO items VALUES (1, '{1,2,3}');
INSERT INTO items VALUES (1, '{1,2,3,NaN}');
INSERT INTO items VALUES (1, '{{1,2},{3,4}}');
CALL sketcher_refresh('items', 'code', -1);
CALL sketcher_refresh('items', 'code', 'NaN');
CALL sketcher_refresh('items', 'code', batch => 0);
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

SELECT sketcher_tie('items', 'items_code_model', 'items_code_pending');
SELECT sketcher_tie('items_code_model', 'items', 'items');
SELECT sketcher_tie(0, 0, 0);

-- vectors of two sizes, before there is a model that could tell which is right
CREATE TABLE sizes (id int, v real[]);
SELECT sketcher_attach('sizes', 'v', 'code', 2);
SELECT sketcher_hash('sizes_code_model'::regclass, '{1,2,3}'::real[]);
INSERT INTO sizes VALUES (1, '{1}');
INSERT INTO sizes SELECT i, ARRAY[i, i * i, 1] FROM generate_series(1, 5) i;
INSERT INTO sizes VALUES (6, '{1,2,3,4}');
CALL sketcher_refresh('sizes', 'code');
DELETE FROM sizes WHERE id = 6;
SET client_min_messages = warning;
CALL sketcher_refresh('sizes', 'code');
RESET client_min_messages;
SELECT count(code) FROM sizes;
INSERT INTO sizes VALUES (7, '{1,2,3,4}');
DROP TABLE sizes;

-- triggers by hand
CREATE TABLE other (v real[], code bithash(2), number int);
CREATE TRIGGER t BEFORE INSERT ON other FOR EACH ROW EXECUTE FUNCTION sketcher_hash_trigger('items_code_model');
INSERT INTO other VALUES ('{1,2,3,4}');
DROP TRIGGER t ON other;
CREATE TRIGGER t AFTER INSERT OR UPDATE OF v, code ON other FOR EACH ROW EXECUTE FUNCTION sketcher_learn_trigger('items_code_model');
INSERT INTO other VALUES ('{1,2,3,4}');
DROP TRIGGER t ON other;
CREATE TRIGGER t BEFORE INSERT OR UPDATE OF v, code ON other FOR EACH ROW EXECUTE FUNCTION sketcher_hash_trigger();
INSERT INTO other VALUES ('{1,2,3,4}');
DROP TRIGGER t ON other;
CREATE TRIGGER t BEFORE INSERT OR UPDATE OF v, code ON other FOR EACH ROW EXECUTE FUNCTION sketcher_hash_trigger('missing');
INSERT INTO other VALUES ('{1,2,3,4}');
DROP TRIGGER t ON other;
CREATE TRIGGER t BEFORE INSERT OR UPDATE OF v, code ON other FOR EACH ROW EXECUTE FUNCTION sketcher_hash_trigger('items');
INSERT INTO other VALUES ('{1,2,3,4}');
DROP TRIGGER t ON other;
CREATE TRIGGER t BEFORE INSERT OR UPDATE OF v, number ON other FOR EACH ROW EXECUTE FUNCTION sketcher_hash_trigger('items_code_model');
INSERT INTO other VALUES ('{1,2,3,4}');
DROP TRIGGER t ON other;
CREATE TRIGGER t BEFORE INSERT OR UPDATE OF number, code ON other FOR EACH ROW EXECUTE FUNCTION sketcher_hash_trigger('items_code_model');
INSERT INTO other VALUES ('{1,2,3,4}');
DROP TABLE other;

-- what would get past the triggers is refused
CREATE INDEX ON items_code_pending (rows);
INSERT INTO items VALUES (51, '{1,2,3,4}');
DROP INDEX items_code_pending_rows_idx;
CREATE INDEX ON items_code_model (bits);
CALL sketcher_refresh('items', 'code');
DROP INDEX items_code_model_bits_idx;
BEGIN;
DELETE FROM items_code_model;
INSERT INTO items VALUES (51, '{1,2,3,4}');
ROLLBACK;
BEGIN;
ALTER TABLE items_code_model ALTER tracker DROP NOT NULL;
UPDATE items_code_model SET tracker = NULL;
INSERT INTO items VALUES (51, '{1,2,3,4}');
ROLLBACK;
BEGIN;
ALTER TABLE items_code_pending ADD extra int;
INSERT INTO items VALUES (51, '{1,2,3,4}');
COMMIT;

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
SELECT sketcher_attach('regress_owned.items', 'v', 'code', 2);
SELECT relname, relowner::regrole FROM pg_class WHERE relnamespace = 'regress_owned'::regnamespace AND relkind = 'r' ORDER BY 1;
SET ROLE regress_unifdiag_writer;
INSERT INTO regress_owned.items VALUES (51, '{1,2,3,4}');
CALL sketcher_refresh('regress_owned.items', 'code');
SELECT sketcher_detach('regress_owned.items', 'code');
SELECT count(*) FROM regress_owned.items_code_model;
UPDATE regress_owned.items_code_model SET published = learning;
DELETE FROM regress_owned.items_code_model;
INSERT INTO regress_owned.items_code_pending VALUES (1, '{{1,2,3,4}}');
SELECT sketcher_hash('regress_owned.items_code_model'::regclass, '{1,2,3,4}'::real[]);
CREATE TEMP TABLE mine (v real[], code bithash);
SELECT sketcher_tie('regress_owned.items_code_model', 'mine', 'regress_owned.items_code_pending');
SELECT count(*) FROM pg_depend WHERE refobjid = 'mine'::regclass AND objid = 'regress_owned.items_code_model'::regclass;
CREATE TRIGGER t BEFORE INSERT OR UPDATE OF v, code ON mine FOR EACH ROW EXECUTE FUNCTION sketcher_hash_trigger('regress_owned.items_code_model');
INSERT INTO mine VALUES ('{1,2,3,4}');
DROP TRIGGER t ON mine;
CREATE TRIGGER t AFTER INSERT OR UPDATE OF v ON mine FOR EACH ROW EXECUTE FUNCTION sketcher_learn_trigger('regress_owned.items_code_model');
INSERT INTO mine VALUES ('{1,2,3,4}');
DROP TRIGGER t ON mine;
CREATE TRIGGER t AFTER INSERT OR UPDATE OF v ON mine FOR EACH ROW WHEN ('regress_owned.items_code_model'::regclass IS NOT NULL) EXECUTE FUNCTION sketcher_learn_trigger('mine');
INSERT INTO mine VALUES ('{1,2,3,4}');
DROP TABLE mine;
SELECT sketcher_hash_trigger();
SELECT sketcher_learn_trigger();
RESET ROLE;
SELECT count(code), count(*) FROM regress_owned.items;

-- who may read a model makes codes with it, and has no say in it
GRANT SELECT ON regress_owned.items_code_model TO regress_unifdiag_writer;
CREATE SCHEMA regress_other AUTHORIZATION regress_unifdiag_writer;
SET ROLE regress_unifdiag_writer;
CREATE TABLE regress_other.mine (v real[], code bithash);
CREATE TRIGGER t BEFORE INSERT OR UPDATE OF v, code ON regress_other.mine FOR EACH ROW EXECUTE FUNCTION sketcher_hash_trigger('regress_owned.items_code_model');
INSERT INTO regress_other.mine VALUES ('{1,2,3,4}');
SELECT code = sketcher_hash('regress_owned.items_code_model'::regclass, v) AS hashed FROM regress_other.mine;
CALL sketcher_refresh('regress_other.mine', 'code');
SELECT sketcher_detach('regress_other.mine', 'code');
DROP TABLE regress_other.mine;

-- a model table of one's own does not lead to pending vectors of others
CREATE TABLE regress_other.mine (id int, v real[]);
SELECT sketcher_attach('regress_other.mine', 'v', 'code', 2, dims => 4);
UPDATE regress_other.mine_code_model SET pending = 'regress_owned.items_code_pending';
INSERT INTO regress_other.mine VALUES (1, '{1,2,3,4}');
CALL sketcher_refresh('regress_other.mine', 'code');
RESET ROLE;
ALTER TABLE regress_other.mine OWNER TO CURRENT_USER;
CALL sketcher_refresh('regress_other.mine', 'code');
DROP TRIGGER zz_unifdiag_code_hash ON regress_other.mine;
CREATE TRIGGER t BEFORE INSERT OR UPDATE OF v, code ON regress_other.mine FOR EACH ROW EXECUTE FUNCTION sketcher_hash_trigger('mine_code_model');
INSERT INTO regress_other.mine VALUES (1, '{1,2,3,4}');
SELECT sum(rows) AS pending FROM regress_owned.items_code_pending;
SELECT relname, relowner::regrole FROM pg_class WHERE relnamespace = 'regress_owned'::regnamespace AND relkind = 'r' ORDER BY 1;
SET client_min_messages = warning;
DROP SCHEMA regress_other CASCADE;
RESET client_min_messages;
REVOKE SELECT ON regress_owned.items_code_model FROM regress_unifdiag_writer;

-- a hostile schema in front of everything, and temporary objects of the same names
CREATE SCHEMA regress_hostile AUTHORIZATION regress_unifdiag_writer;
SET ROLE regress_unifdiag_writer;
SET search_path = pg_temp, regress_hostile, pg_catalog, public;
CREATE TABLE regress_hostile.items_code_model (published text, learning text);
CREATE TABLE regress_hostile.items_code_pending (rows int);
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
SELECT public.sketcher_attach('regress_owned.items', 'v', 'code', 2);
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

-- another owner takes the tables along at the next refresh
ALTER TABLE regress_owned.items OWNER TO regress_unifdiag_writer;
SET ROLE regress_unifdiag_writer;
INSERT INTO regress_owned.items VALUES (54, '{1,2,3,6}');
SET client_min_messages = warning;
CALL sketcher_refresh('regress_owned.items', 'code');
RESET client_min_messages;
RESET ROLE;
SELECT relname, relowner::regrole FROM pg_class WHERE relnamespace = 'regress_owned'::regnamespace AND relkind = 'r' ORDER BY 1;
SELECT (sketcher_info(learning)).rows FROM regress_owned.items_code_model;

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
SELECT (sketcher_info(learning)).rows FROM regress_owned.items_code_model;
ALTER TABLE regress_owned.items FORCE ROW LEVEL SECURITY;
CALL sketcher_refresh('regress_owned.items', 'code');
SELECT sketcher_attach('regress_owned.items', 'v', 'second', 2);
SET client_min_messages = warning;
ALTER TABLE regress_owned.items_code_model ENABLE ROW LEVEL SECURITY;
ALTER TABLE regress_owned.items_code_model FORCE ROW LEVEL SECURITY;
SET ROLE regress_unifdiag_writer;
SELECT sketcher_hash('regress_owned.items_code_model'::regclass, '{1,2,3,4}'::real[]);
RESET ROLE;
DROP SCHEMA regress_owned CASCADE;
DROP TABLE items CASCADE;
DROP ROLE regress_unifdiag_owner, regress_unifdiag_writer;
SELECT relname FROM pg_class WHERE relname LIKE 'items%';
