# Living in a table that moves: dump and restore, logical replication, pgvector's types.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('move');
$node->init(allows_streaming => 'logical');
$node->append_conf('postgresql.conf', 'fsync = off');
$node->start;
my $directory = PostgreSQL::Test::Utils::tempdir();
my $vec = q{
	CREATE FUNCTION vec(i int) RETURNS real[] LANGUAGE sql IMMUTABLE
		AS 'SELECT ARRAY(SELECT sin(i::float8 * k) * (1 + k % 5) FROM generate_series(1, 16) k)::real[]'};
sub value { my ($sql, $database) = @_; return $node->safe_psql($database // 'postgres', $sql); }

# tables that have been renamed, moved, partitioned; with vectors that still have to be learnt
$node->safe_psql('postgres', qq{
	CREATE ROLE keeper;
	CREATE EXTENSION unifdiag;
	$vec;
	CREATE SCHEMA early;
	CREATE TABLE early.items (gone int, id serial PRIMARY KEY, w real[]);
	ALTER TABLE early.items DROP COLUMN gone;
	INSERT INTO early.items (w) SELECT vec(i) FROM generate_series(1, 200) i;
	SELECT sketcher_attach('early.items', 'w', 'c', 8, auto_refresh => NULL), sketcher_attach('early.items', 'w', 'd', 4, auto_refresh => NULL);
	ALTER SCHEMA early RENAME TO late;
	ALTER TABLE late.items RENAME TO "Things";
	ALTER TABLE late."Things" RENAME COLUMN w TO v;
	ALTER TABLE late."Things" RENAME COLUMN c TO code;
	GRANT USAGE ON SCHEMA late TO keeper;
	ALTER TABLE late."Things" OWNER TO keeper;
	ALTER TABLE late.items_c_model OWNER TO keeper;
	ALTER TABLE late.items_d_model OWNER TO keeper;
	-- elsewhere, and under other names than at first
	CREATE SCHEMA models;
	GRANT USAGE ON SCHEMA models TO keeper;
	ALTER TABLE late.items_d_model SET SCHEMA models;
	ALTER TABLE models.items_d_model RENAME TO "Model d";
	INSERT INTO late."Things" (v) SELECT vec(i) FROM generate_series(201, 210) i;
	CREATE TABLE parted (id serial, v real[]) PARTITION BY RANGE (id);
	CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (100);
	CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (100) TO (100000);
	INSERT INTO parted (v) SELECT vec(i) FROM generate_series(1, 200) i;
	SELECT sketcher_attach('parted', 'v', 'code', 8, auto_refresh => NULL);
	CREATE SCHEMA moved;
	ALTER TABLE parted SET SCHEMA moved;
});
my $digest = q{
	SELECT md5(string_agg(id || code::text || d::text, ',' ORDER BY id)) FROM late."Things"
	UNION ALL SELECT md5(string_agg(id || code::text, ',' ORDER BY id)) FROM moved.parted
	UNION ALL SELECT md5(published::text || learning::text) FROM late.items_c_model
	UNION ALL SELECT string_agg(pg_get_triggerdef(oid), ',' ORDER BY tgname) FROM pg_trigger WHERE tgrelid = 'late."Things"'::regclass
	UNION ALL SELECT string_agg(tgenabled::text, ',') FROM pg_trigger WHERE tgname LIKE 'zz%'
};
my $wrong = q{
	SELECT (SELECT count(*) FROM late."Things" WHERE code IS DISTINCT FROM sketcher_hash('late.items_c_model'::regclass, v))
		+ (SELECT count(*) FROM late."Things" WHERE d IS DISTINCT FROM sketcher_hash('models."Model d"'::regclass, v))
		+ (SELECT count(*) FROM moved.parted WHERE code IS DISTINCT FROM sketcher_hash('parted_code_model'::regclass, v))};
my $left = q{SELECT string_agg(relname, ',') FROM pg_class WHERE relname ~ '_model|Model d' AND relkind = 'r'};
my $before = value($digest);
foreach my $format ('plain', 'custom')
{
	my $database = "restored_$format";
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->command_ok([ 'pg_dump', '-F', $format, '-f', "$directory/$format", $node->connstr('postgres') ], "dump as $format");
	$node->command_ok($format eq 'plain'
		? [ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', "$directory/$format", $node->connstr($database) ]
		: [ 'pg_restore', '-e', '-j', '2', '-d', $node->connstr($database), "$directory/$format" ], "restore from $format");
	is(value($digest, $database), $before, "all is there after restoring from $format");
	value(q{INSERT INTO late."Things" (v) SELECT vec(i) FROM generate_series(211, 220) i;
		INSERT INTO moved.parted (v) SELECT vec(i) FROM generate_series(211, 220) i}, $database);
	is(value($wrong, $database), 0, "rows inserted after restoring from $format have right codes");
	value(q{CALL sketcher_refresh('late."Things"', 'code'); CALL sketcher_refresh('late."Things"', 'd'); CALL sketcher_refresh('moved.parted', 'code')}, $database)
	  if $format eq 'plain';
	is(value($wrong, $database), 0, "refresh after restoring from $format");
	cmp_ok(value('SELECT (sketcher_info(learning)).rows FROM late.items_c_model', $database), '>=', $format eq 'plain' ? 220 : 200, "rows learnt after restoring from $format");
	value(q{SELECT sketcher_detach('late."Things"', 'd'); SELECT sketcher_detach('late."Things"', 'code'); SELECT sketcher_detach('moved.parted', 'code')}, $database);
	is(value($left, $database), '', "detaching takes the model tables along after restoring from $format");
}

# The same by an owner who is no superuser, and by tables.
$node->safe_psql('postgres', q{CREATE ROLE owner LOGIN; CREATE DATABASE owned OWNER owner; CREATE DATABASE owned_again OWNER owner});
foreach my $database ('owned', 'owned_again')
{
	$node->safe_psql($database, 'CREATE EXTENSION unifdiag; GRANT ALL ON SCHEMA public TO owner');
}
$node->safe_psql('owned', qq{SET ROLE owner; $vec; CREATE TABLE items (id serial, v real[]); INSERT INTO items (v) SELECT vec(i) FROM generate_series(1, 50) i;
	SELECT sketcher_attach('items', 'v', 'code', 8, auto_refresh => NULL)});
$node->command_ok([ 'pg_dump', '-U', 'owner', '-t', 'items', '-t', 'items_id_seq', '-t', 'items_code_model', '-f', "$directory/owned", '-d', 'owned', '-h', $node->host, '-p', $node->port ], 'dump by tables');
$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-U', 'owner', '-h', $node->host, '-p', $node->port, '-d', 'owned_again', '-f', "$directory/owned" ], 'restore as the owner');
value("SET ROLE owner; $vec; INSERT INTO items (v) SELECT vec(i) FROM generate_series(51, 60) i; CALL sketcher_refresh('items', 'code')", 'owned_again');
is(value(q{SELECT count(*) FROM items WHERE code IS DISTINCT FROM sketcher_hash('items_code_model'::regclass, v)}, 'owned_again'), 0, 'right codes there');

# Logical replication: an attached column of the subscriber has codes of the subscriber's model, and
# learns; without, it has the codes that come.
my $subscriber = PostgreSQL::Test::Cluster->new('subscriber');
$subscriber->init;
$subscriber->append_conf('postgresql.conf', 'fsync = off');
$subscriber->start;
$node->safe_psql('postgres', q{
	CREATE TABLE sent (id int PRIMARY KEY, v real[], code bithash(8));
	INSERT INTO sent SELECT i, vec(i) FROM generate_series(1, 100) i;
	SELECT sketcher_attach('sent', 'v', 'code', 8, auto_refresh => NULL);
	CREATE TABLE sent_too (LIKE sent INCLUDING ALL);
	INSERT INTO sent_too SELECT * FROM sent;
	CREATE PUBLICATION p FOR TABLE sent, sent_too});
$subscriber->safe_psql('postgres', qq{
	CREATE EXTENSION unifdiag;
	$vec;
	CREATE TABLE sent (id int PRIMARY KEY, v real[], code bithash(8));
	CREATE TABLE sent_too (LIKE sent INCLUDING ALL);
	SELECT sketcher_attach('sent', 'v', 'code', 8, seed => 7, rotation => 'random', auto_refresh => NULL);
	CREATE SUBSCRIPTION s CONNECTION '@{[ $node->connstr ]} dbname=postgres' PUBLICATION p});
$subscriber->poll_query_until('postgres', q{SELECT count(*) = 2 FROM pg_subscription_rel WHERE srsubstate = 'r'}) or die 'no initial copy';
$subscriber->safe_psql('postgres', q{CALL sketcher_refresh('sent', 'code')});
value(q{INSERT INTO sent SELECT i, vec(i) FROM generate_series(101, 150) i; UPDATE sent SET v = vec(id + 1) WHERE id <= 5; INSERT INTO sent_too SELECT * FROM sent WHERE id > 100});
$node->wait_for_catchup('s');
$subscriber->safe_psql('postgres', q{CALL sketcher_refresh('sent', 'code')});
is($subscriber->safe_psql('postgres', q{SELECT count(*) FROM sent WHERE code IS DISTINCT FROM sketcher_hash('sent_code_model'::regclass, v)}), 0, 'subscriber: codes of its own model');
is($subscriber->safe_psql('postgres', q{SELECT (sketcher_info(learning)).rows FROM sent_code_model}), 155, 'subscriber: learns what comes');
my $codes = q{SELECT md5(string_agg(id || code::text, ',' ORDER BY id)) FROM sent_too};
is($subscriber->safe_psql('postgres', $codes), value($codes), 'a column that is not attached has the codes that come');
$subscriber->safe_psql('postgres', 'DROP SUBSCRIPTION s');

# A whole database: the model tables go along, with every change of them.
$node->safe_psql('postgres', 'CREATE DATABASE whole');
value(qq{CREATE EXTENSION unifdiag; $vec; CREATE TABLE items (id int PRIMARY KEY, v real[]); INSERT INTO items SELECT i, vec(i) FROM generate_series(1, 50) i;
	SELECT sketcher_attach('items', 'v', 'code', 8); CREATE PUBLICATION everything FOR ALL TABLES}, 'whole');
$subscriber->safe_psql('postgres', 'CREATE DATABASE whole');
$node->command_ok([ 'pg_dump', '-s', '--no-publications', '-f', "$directory/schema", $node->connstr('whole') ], 'dump the schema');
$subscriber->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', "$directory/schema", $subscriber->connstr('whole') ], 'restore the schema');
$subscriber->safe_psql('whole', qq{CREATE SUBSCRIPTION whole CONNECTION '@{[ $node->connstr ]} dbname=whole' PUBLICATION everything});
$subscriber->poll_query_until('whole', q{SELECT count(*) = 2 FROM pg_subscription_rel WHERE srsubstate = 'r'}) or die 'no initial copy';
value(q{INSERT INTO items SELECT i, vec(i * i) FROM generate_series(51, 3000) i}, 'whole');
value(q{CALL sketcher_refresh('items', 'code')}, 'whole');
value(q{INSERT INTO items SELECT i, vec(i) FROM generate_series(3001, 3010) i}, 'whole');
$node->wait_for_catchup('whole');
my $whole = q{SELECT md5(string_agg(id || code::text, ',' ORDER BY id)) || (SELECT generation || md5(published::text) FROM items_code_model) FROM items};
is($subscriber->safe_psql('whole', $whole), value($whole, 'whole'), 'a database that is replicated as a whole has the same model and codes');
$subscriber->safe_psql('whole', 'DROP SUBSCRIPTION whole');
$subscriber->stop;

# pgvector
SKIP:
{
	skip 'pgvector is not available in this server', 8
	  unless value(q{SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'});
	# a table for each, and one for both
	value(q{
		CREATE EXTENSION vector;
		CREATE TABLE embeddings (id int, v vector(16));
		CREATE TABLE embeddings_half (id int, v halfvec(16));
		CREATE TABLE embeddings_both (id int, v vector(16), h halfvec(16));
		INSERT INTO embeddings SELECT i, vec(i) FROM generate_series(1, 200) i;
		INSERT INTO embeddings_half SELECT id, v::halfvec FROM embeddings;
		INSERT INTO embeddings_both SELECT id, v, v::halfvec FROM embeddings;
		SELECT sketcher_attach('embeddings', 'v', 'code', 8, auto_refresh => NULL), sketcher_attach('embeddings_half', 'v', 'code', 8, auto_refresh => NULL),
			sketcher_attach('embeddings_both', 'v', 'code', 8, auto_refresh => NULL), sketcher_attach('embeddings_both', 'h', 'half', 8, auto_refresh => NULL);
		INSERT INTO embeddings SELECT i, vec(i) FROM generate_series(201, 300) i;
		INSERT INTO embeddings_half SELECT i, vec(i)::vector::halfvec FROM generate_series(201, 300) i;
		INSERT INTO embeddings_both SELECT i, vec(i), vec(i)::vector::halfvec FROM generate_series(201, 300) i;
		CALL sketcher_refresh('embeddings', 'code'); CALL sketcher_refresh('embeddings_half', 'code');
		CALL sketcher_refresh('embeddings_both', 'code'); CALL sketcher_refresh('embeddings_both', 'half')});
	is(value(q{SELECT count(*) FROM embeddings WHERE code IS DISTINCT FROM sketcher_hash('embeddings_code_model'::regclass, v)}), 0, 'vector: right codes');
	is(value(q{SELECT count(*) FROM embeddings_half WHERE code IS DISTINCT FROM sketcher_hash('embeddings_half_code_model'::regclass, v::real[])}), 0, 'halfvec: right codes');
	is(value(q{SELECT (sketcher_info(learning)).rows FROM embeddings_code_model UNION ALL SELECT (sketcher_info(learning)).rows FROM embeddings_half_code_model}), "300\n300", 'all learnt');
	is(value(q{SELECT count(*) FROM embeddings_both WHERE code IS DISTINCT FROM sketcher_hash('embeddings_both_code_model'::regclass, v)}), 0, 'two columns, vector: right codes');
	is(value(q{SELECT count(*) FROM embeddings_both WHERE half IS DISTINCT FROM sketcher_hash('embeddings_both_half_model'::regclass, h::real[])}), 0, 'two columns, halfvec: right codes');
	# attaching one column, or changing its codes, updates rows, which the other may learn again: each twice at most
	foreach my $model ('code', 'half')
	{
		my $rows = value(qq{SELECT (sketcher_info(learning)).rows FROM embeddings_both_${model}_model});
		ok($rows >= 300 && $rows <= 600, "two columns: $model has learnt $rows rows");
	}
	value('DROP TABLE embeddings, embeddings_half, embeddings_both');
	is(value($left . q{ AND relname LIKE 'embed%'}), '', 'and gone');
}

$node->stop;
unlike(slurp_file($node->logfile), qr/TRAP|PANIC/, 'nothing went wrong behind the scenes');
done_testing();
