-- what an extension must be: documented, relocatable, and gone when dropped

-- every public object has a comment; support functions, which nobody calls, need none
SELECT p.oid::regprocedure AS without_comment
FROM pg_proc p
JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'unifdiag'
WHERE obj_description(p.oid, 'pg_proc') IS NULL
	AND NOT EXISTS (SELECT FROM pg_operator o WHERE o.oprcode = p.oid
		AND obj_description(o.oid, 'pg_operator') IS NOT NULL)
	AND NOT EXISTS (SELECT FROM pg_amproc a WHERE a.amproc = p.oid)
	AND NOT EXISTS (SELECT FROM pg_aggregate a WHERE p.oid IN (a.aggtransfn, a.aggfinalfn, a.aggcombinefn))
	AND NOT EXISTS (SELECT FROM pg_type t WHERE p.oid IN (t.typinput, t.typoutput, t.typreceive,
		t.typsend, t.typmodin, t.typmodout))
	AND NOT EXISTS (SELECT FROM pg_proc s WHERE s.prosupport = p.oid);

SELECT pg_describe_object(d.classid, d.objid, 0) AS without_comment
FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'unifdiag'
WHERE d.deptype = 'e' AND d.classid IN ('pg_type'::regclass, 'pg_operator'::regclass, 'pg_opclass'::regclass, 'pg_am'::regclass)
	AND obj_description(d.objid, d.classid::regclass::name) IS NULL
	-- from 17 on, types of arrays belong to the extension, too
	AND NOT (d.classid = 'pg_type'::regclass AND d.objid IN (SELECT typarray FROM pg_type))
ORDER BY 1;

-- and every function says that it may run in parallel workers
SELECT p.oid::regprocedure AS not_parallel_safe
FROM pg_proc p
JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'unifdiag'
WHERE p.proparallel <> 's';

-- operator classes hold together
SELECT c.opcname, a.amname, amvalidate(c.oid)
FROM pg_opclass c JOIN pg_am a ON a.oid = c.opcmethod
JOIN pg_depend d ON d.classid = 'pg_opclass'::regclass AND d.objid = c.oid AND d.deptype = 'e'
JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'unifdiag'
ORDER BY 1, 2;

-- it works from a schema that is not in the search path, and moves
CREATE SCHEMA elsewhere;
ALTER EXTENSION unifdiag SET SCHEMA elsewhere;
SELECT '0101'::elsewhere.bithash OPERATOR(elsewhere.<~>) '0011'::elsewhere.bithash AS distance;
-- also for those who may not use the schema, but read a view
CREATE TABLE coded AS SELECT '0101'::elsewhere.bithash AS code;
CREATE INDEX coded_code ON coded USING hamming (code);
CREATE VIEW near AS SELECT code::text FROM coded WHERE elsewhere.hamming_within(code, '0011', 2);
CREATE ROLE regress_unifdiag_user;
GRANT SELECT ON near TO regress_unifdiag_user;
SET ROLE regress_unifdiag_user;
SET enable_seqscan = off;
EXPLAIN (costs off) SELECT * FROM near;
SELECT * FROM near;
RESET enable_seqscan;
RESET ROLE;
DROP TABLE coded CASCADE;
DROP ROLE regress_unifdiag_user;
ALTER EXTENSION unifdiag SET SCHEMA public;
DROP SCHEMA elsewhere;

-- it leaves nothing behind
DROP EXTENSION unifdiag;
SELECT count(*) FROM pg_proc WHERE probin LIKE '%unifdiag%';

-- anybody who may create objects in a database may install it
CREATE ROLE regress_unifdiag_user;
DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO regress_unifdiag_user', current_database()); END $$;
GRANT CREATE ON SCHEMA public TO regress_unifdiag_user;
SET ROLE regress_unifdiag_user;
CREATE EXTENSION unifdiag;
RESET ROLE;
SELECT r.rolname FROM pg_extension e JOIN pg_roles r ON r.oid = e.extowner WHERE extname = 'unifdiag';
DROP EXTENSION unifdiag;
REVOKE CREATE ON SCHEMA public FROM regress_unifdiag_user;
DO $$ BEGIN EXECUTE format('REVOKE CREATE ON DATABASE %I FROM regress_unifdiag_user', current_database()); END $$;
DROP ROLE regress_unifdiag_user;
CREATE EXTENSION unifdiag;
