# Living in a table, with many writers at once: nobody waits, nothing that was rolled back is
# learnt, a refresh in the midst of it leaves no wrong code, and refreshes come by themselves.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Session;
use Test::More;
use Time::HiRes qw(sleep time);

my $node = PostgreSQL::Test::Cluster->new('table');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', "fsync = off\nmax_prepared_transactions = 5\nautovacuum = off\nmax_connections = 60\nsynchronous_commit = local\n# one is that of logical replication\nmax_worker_processes = 3");
$node->start;

$node->safe_psql('postgres', q{
	CREATE EXTENSION unifdiag;
	CREATE FUNCTION vec(i int) RETURNS real[] LANGUAGE sql IMMUTABLE
		AS 'SELECT ARRAY(SELECT sin(i::float8 * k) * (1 + k % 5) + CASE WHEN i > 1000 THEN cos(i::float8 * k * k) * (k % 7) ELSE 0 END FROM generate_series(1, 32) k)::real[]';
	CREATE TABLE items (id serial PRIMARY KEY, v real[], note text);
	INSERT INTO items (v) SELECT vec(i) FROM generate_series(1, 100) i;
	SELECT sketcher_attach('items', 'v', 'code', 16, auto_refresh => NULL);
	CREATE VIEW wrong AS SELECT id FROM items WHERE code IS DISTINCT FROM sketcher_hash('items_code_model'::regclass, v);
	CREATE VIEW learnt AS SELECT (sketcher_info(learning)).rows FROM items_code_model;
});
sub value { return $node->safe_psql('postgres', $_[0]); }
sub refresh
{
	my ($code, $out, $err) = $node->psql('postgres', q{CALL sketcher_refresh('items', 'code')});
	return $err;
}

# sixteen writers in long transactions
my @writers = map { Session->new($node) } 1 .. 16;
$_->query(q{SET statement_timeout = '20s'; BEGIN}) foreach @writers;
my $start = time;
foreach my $i (1 .. 16)
{
	is($writers[ $i - 1 ]->query("INSERT INTO items (v) VALUES (vec(1000 + $i)) RETURNING code IS NOT NULL"), 't', "writer $i is not blocked");
}
is(value('SELECT count(*) FROM pg_locks WHERE NOT granted'), 0, 'nobody waits for anybody');
$writers[$_]->query($_ % 2 ? 'COMMIT' : 'ROLLBACK') foreach 0 .. 15;
cmp_ok(time - $start, '<', 15, 'all of it in no time');
refresh();
is(value('SELECT rows FROM learnt'), 108, 'learnt is what was committed');
is(value('SELECT count(*) FROM wrong'), 0, 'all codes are right');

# nor do they wait for whoever is changing the model
$writers[0]->query('BEGIN; LOCK TABLE items_code_model IN EXCLUSIVE MODE; UPDATE items_code_model SET generation = generation');
is($writers[1]->query(q{SET statement_timeout = '5s'; INSERT INTO items (v) VALUES (vec(1020)) RETURNING code IS NOT NULL}), 't', 'a writer does not wait for the model');
$writers[0]->query('ROLLBACK');
refresh();

# A model that changes most codes is published while a transaction is open that has used the one of before.
my $writer = $writers[0];
$writer->query('BEGIN; INSERT INTO items (v) SELECT vec(2000 + i) FROM generate_series(1, 20) i');
value('INSERT INTO items (v) SELECT vec(3000 + i) FROM generate_series(1, 2000) i');
my $other = $writers[1];
$other->send(q{CALL sketcher_refresh('items', 'code')});
sleep 0.1 until value('SELECT generation FROM items_code_model') >= 4;
sleep 0.5;
ok(!$other->is_done, 'refresh waits for transactions that may have used the model of before');
my ($code, $out, $err) = $node->psql('postgres', q{CALL sketcher_refresh('items', 'code')});
like($err, qr/model table "items_code_model" is in use by another refresh/, 'a second refresh is told');
is($writers[2]->query('UPDATE items SET note = 1 WHERE id <= 3; SELECT 1'), 1, 'and others write');
like(value(q{SELECT string_agg(query, ' ') FROM pg_stat_activity}), qr/sketcher_refresh of public.items: waiting for older transactions/, 'progress in pg_stat_activity');
is($writers[2]->query(q{SELECT count(*) FROM wrong WHERE id <= 3}), 0, 'rows that are written meanwhile get their codes');
is($writer->query(q{SELECT count(*) > 0 FROM wrong}), 't', 'the codes of the open transaction are those of before');
$writer->query('COMMIT');
($out, $err) = $other->finish;
unlike($err, qr/WARNING|ERROR/, 'refresh goes on when the transaction has ended');
is(value('SELECT count(*) FROM wrong'), 0, 'and its codes are right then');

# Rows that others have locked are not waited for while anything is held, nor forgotten.
value('INSERT INTO items (v) SELECT vec(i) FROM generate_series(1, 4000) i');
$writer->query('BEGIN; SELECT count(*) FROM (SELECT id FROM items WHERE id % 7 = 0 FOR UPDATE) locked');
$other->send(q{SET lock_timeout = '3s'; CALL sketcher_refresh('items', 'code', batch => 50)});
sleep 0.1 until value('SELECT generation FROM items_code_model') >= 5;
is($writers[2]->query(q{SET statement_timeout = '5s'; UPDATE items SET note = 2 WHERE id % 7 = 1; SELECT 1}), 1, 'refresh does not hold up others');
($out, $err) = $other->finish;
like($err, qr/canceling statement due to lock timeout/, 'it waits for the rows no longer than it may');
isnt(value('SELECT walk_table IS NULL FROM items_code_model'), 't', 'and is not marked as finished');
$writer->query('ROLLBACK');
like(refresh(), qr/finishing an earlier refresh/, 'the next one finishes it');
is(value('SELECT count(*) FROM wrong'), 0, 'all codes are right');
$writer->query('BEGIN; SELECT count(*) FROM (SELECT id FROM items WHERE id % 7 = 0 FOR UPDATE) locked');
value('INSERT INTO items (v) SELECT vec(9000 + i) FROM generate_series(1, 2000) i');
$other->send(q{RESET lock_timeout; CALL sketcher_refresh('items', 'code', batch => 50)});
sleep 1;
$writer->query('COMMIT');
($out, $err) = $other->finish;
unlike($err, qr/WARNING|ERROR/, 'refresh ends when the rows are free');
is(value('SELECT count(*) FROM wrong'), 0, 'all codes are right then');

# Somebody detaches the column, drops the table, gives it away or attaches it anew between two batches.
value('CREATE ROLE heir');
my $gone = qr/column "code" of table "leaving" is not attached|table with OID \d+ does not exist/;
my $changed = qr/owner or model table of table "leaving" changed during the refresh/;
foreach my $case (
	[ q{SELECT sketcher_detach('leaving', 'code')}, $gone, 0 ],
	[ 'DROP TABLE leaving', $gone, 0 ],
	[ 'BEGIN; ALTER TABLE leaving OWNER TO heir; ALTER TABLE leaving_code_model OWNER TO heir; COMMIT', $changed, 1 ],
	[ q{BEGIN; SELECT sketcher_detach('leaving', 'code'); SELECT sketcher_attach('leaving', 'v', 'code', 16, backfill => false, auto_refresh => NULL); COMMIT}, $changed, 1 ])
{
	my ($what, $expected, $models) = @$case;
	value(q{CREATE TABLE leaving (id int, v real[]); INSERT INTO leaving SELECT i, vec(i) FROM generate_series(1, 3000) i;
		SELECT sketcher_attach('leaving', 'v', 'code', 16, backfill => false, auto_refresh => NULL);
		CREATE OR REPLACE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.001); RETURN new; END $$;
		CREATE TRIGGER slow BEFORE UPDATE ON leaving FOR EACH ROW EXECUTE FUNCTION slow()});
	$other->send(q{CALL sketcher_refresh('leaving', 'code', batch => 10)});
	sleep 0.05 until value('SELECT walk_page > 0 FROM leaving_code_model') eq 't';
	value($what);
	($out, $err) = $other->finish;
	like($err, qr/ERROR:  ($expected)/, "$what in the midst of a refresh");
	is(value(q{SELECT count(*) FROM pg_class WHERE relname = 'leaving_code_model'}), $models, "$models model tables are left");
	value('DROP TABLE IF EXISTS leaving');
}
value('DROP ROLE heir');

# Writers, changers and repeated refreshes, all at once.
value(q{CREATE TABLE counted (rows int)});
foreach my $i (0 .. 3)
{
	$writers[$i]->send(qq{
		SET statement_timeout = 0;
		DO \$\$
		BEGIN
			FOR i IN 1..300 LOOP
				INSERT INTO items (v) SELECT vec($i * 10000 + i * 8 + k) FROM generate_series(0, i % 3) k;
				INSERT INTO counted VALUES (1 + i % 3);
				IF i % 5 = 0 THEN
					ROLLBACK;
				ELSE
					COMMIT;
				END IF;
			END LOOP;
		END \$\$});
}
foreach my $i (4 .. 5)
{
	# other columns, so that rows move without being hashed
	$writers[$i]->send(qq{
		DO \$\$
		BEGIN
			FOR i IN 1..150 LOOP
				UPDATE items SET note = repeat('x', i) WHERE id % 150 = i AND id % 2 = $i - 4;
				COMMIT;
			END LOOP;
		END \$\$});
}
my $refreshes = 0;
while (grep { !$_->is_done } @writers[ 0 .. 5 ])
{
	my $said = refresh();
	$refreshes++;
	unlike($said, qr/ERROR/, "refresh $refreshes in the midst of writing");
}
foreach my $i (0 .. 5)
{
	my ($printed, $error) = $writers[$i]->finish;
	is($error, '', "writer $i had no trouble");
}
is(value('SELECT count(*) FROM wrong'), 0, 'no wrong code is left when all have ended');
refresh();
is(value('SELECT count(*) FROM wrong'), 0, 'all codes are right');

# A slow refresh; and two columns that are refreshed at once, one of them a row at a time.
value(q{
	CREATE TABLE pairs (id int PRIMARY KEY, v real[], filler text DEFAULT repeat('x', 1000));
	INSERT INTO pairs SELECT i, vec(i) FROM generate_series(1, 25) i;
	SELECT sketcher_attach('pairs', 'v', 'slow', 16, auto_refresh => NULL), sketcher_attach('pairs', 'v', 'fast', 16, seed => 1, auto_refresh => NULL);
	CREATE INDEX ON pairs USING hamming (slow);
	CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.5); RETURN new; END $$;
	CREATE TRIGGER wait BEFORE UPDATE ON pairs FOR EACH ROW WHEN (old.slow IS DISTINCT FROM new.slow) EXECUTE FUNCTION wait();
	ALTER TABLE pairs DISABLE TRIGGER zz_unifdiag_slow_hash, DISABLE TRIGGER zz_unifdiag_fast_hash, DISABLE TRIGGER wait;
	UPDATE pairs SET slow = NULL, fast = NULL;
	ALTER TABLE pairs ENABLE ALWAYS TRIGGER zz_unifdiag_slow_hash, ENABLE ALWAYS TRIGGER zz_unifdiag_fast_hash, ENABLE TRIGGER wait});
my $progress = q{SELECT count(*) FROM pg_stat_activity WHERE query ~ 'sketcher_refresh of public.pairs: page [1-9]\d* of \d+ of table "pairs", [1-9]\d* codes changed' AND pid <> pg_backend_pid()};
$other->send(q{CALL sketcher_refresh('pairs', 'slow', batch => 1)});
sleep 0.1 until $other->is_done || value($progress) > 0;
is(value(q{SET enable_seqscan = off; SELECT count(*) FROM (SELECT id FROM pairs ORDER BY slow <~> sketcher_hash('pairs_slow_model'::regclass, vec(3)) LIMIT 25) found}), 25, 'searches find all rows meanwhile');
($out, $err) = $other->finish;
like($err, qr/NOTICE:  sketcher_refresh of public.pairs: page \d+ of \d+ of table "pairs", \d+ codes changed\n/, 'a notice tells now and then how far it is');
like($err, qr/NOTICE:  table "pairs": 25 codes changed/, 'all rows are changed');
value(q{ALTER TABLE pairs DISABLE TRIGGER ALL; UPDATE pairs SET slow = NULL, fast = NULL;
	ALTER TABLE pairs ENABLE ALWAYS TRIGGER zz_unifdiag_slow_hash, ENABLE ALWAYS TRIGGER zz_unifdiag_fast_hash, ENABLE TRIGGER wait});
$other->send(q{CALL sketcher_refresh('pairs', 'slow', batch => 1)});
sleep 0.1 until $other->is_done || value($progress) > 0;
($code, $out, $err) = $node->psql('postgres', q{CALL sketcher_refresh('pairs', 'fast')});
unlike($err, qr/WARNING|ERROR/, 'one column is refreshed while another is');
($out, $err) = $other->finish;
unlike($err, qr/WARNING|ERROR/, 'and the other has no trouble');
is(value(q{SELECT count(*) FROM pairs WHERE fast IS DISTINCT FROM sketcher_hash('pairs_fast_model'::regclass, v) OR slow IS DISTINCT FROM sketcher_hash('pairs_slow_model'::regclass, v)}), 0, 'all codes of both are right');

# two-phase commit
my $rows = value('SELECT rows FROM learnt');
value(q{BEGIN; INSERT INTO items (v) VALUES (vec(1)); PREPARE TRANSACTION 'one'});
value(q{BEGIN; INSERT INTO items (v) VALUES (vec(2)); PREPARE TRANSACTION 'two'});
$node->psql('postgres', q{CALL sketcher_refresh('items', 'code', min_drift => 1)});
is(value('SELECT rows FROM learnt') - $rows, 0, 'what is prepared is not learnt yet');
value(q{COMMIT PREPARED 'one'});
value(q{ROLLBACK PREPARED 'two'});
refresh();
is(value('SELECT rows FROM learnt') - $rows, 1, 'what is committed then is');

# so are parts of a transaction that was running when the others were learnt
$rows = value('SELECT rows FROM learnt');
$writer->query('BEGIN; INSERT INTO items (v) VALUES (vec(1)); SAVEPOINT a; INSERT INTO items (v) VALUES (vec(2)); SAVEPOINT b; INSERT INTO items (v) VALUES (vec(3))');
value('INSERT INTO items (v) VALUES (vec(4))');
$node->psql('postgres', q{CALL sketcher_refresh('items', 'code', min_drift => 1)});
is(value('SELECT rows FROM learnt') - $rows, 1, 'what is not committed is not learnt');
$writer->query('COMMIT');
refresh();
is(value('SELECT rows FROM learnt') - $rows, 4, 'and is when it is');

# rows that are frozen when they come
$rows = value('SELECT rows FROM learnt');
value(q{CREATE TABLE source AS SELECT vec(i) AS v FROM generate_series(1, 10) i;
	CREATE TABLE frozen (v real[]); SELECT sketcher_attach('frozen', 'v', 'code', 4, auto_refresh => NULL, dims => 32);
	INSERT INTO frozen SELECT v FROM source; CALL sketcher_refresh('frozen', 'code')});
my $file = PostgreSQL::Test::Utils::tempdir() . '/rows';
value(qq{\\copy source TO '$file'
	BEGIN; TRUNCATE frozen; COPY frozen (v) FROM '$file' (FREEZE); COMMIT; CALL sketcher_refresh('frozen', 'code')});
is(value('SELECT (sketcher_info(learning)).rows FROM frozen_code_model'), 20, 'rows of COPY FREEZE are learnt');

# isolation levels: the newest model is used, and learning does not get in the way
foreach my $level ('repeatable read', 'serializable')
{
	$writer->query("BEGIN ISOLATION LEVEL $level; SELECT count(*) FROM items");
	value('INSERT INTO items (v) SELECT vec(7000 + i) FROM generate_series(1, 500) i');
	refresh();
	is($writer->query('INSERT INTO items (v) VALUES (vec(9)); COMMIT; SELECT count(*) FROM wrong'), 0, "right codes at $level");
	value(qq{SET default_transaction_isolation = '$level'; CALL sketcher_refresh('items', 'code')});
	is(value('SELECT count(*) FROM wrong'), 0, "refresh at $level");
	# rows that are committed while the lock is waited for
	value('CREATE TABLE late AS SELECT vec(i) AS v FROM generate_series(1, 50) i');
	$writer->query('BEGIN; INSERT INTO late SELECT vec(i) FROM generate_series(51, 60) i');
	$other->send(qq{BEGIN ISOLATION LEVEL $level; SELECT sketcher_attach('late', 'v', 'code', 16, auto_refresh => NULL); COMMIT});
	sleep 0.1 until value(q{SELECT count(*) FROM pg_locks WHERE relation = 'late'::regclass AND NOT granted});
	$writer->query('COMMIT');
	$other->finish;
	is(value('SELECT count(code), (SELECT (sketcher_info(learning)).rows FROM late_code_model) FROM late'), '60|60', "attach at $level");
	value('DROP TABLE late');
}

# who may not attach or detach does not wait for a lock either, with all others behind him
value('CREATE ROLE stranger');
$writer->query('BEGIN; SELECT count(*) FROM items');
foreach my $what (q{sketcher_attach('items', 'v', 'more', 16)}, q{sketcher_detach('items', 'code')})
{
	($code, $out, $err) = $node->psql('postgres', "SET ROLE stranger; SET lock_timeout = '1s'; SELECT $what");
	like($err, qr/must be owner of table items/, "$what: a stranger is turned away at once");
}
$writer->query('COMMIT');
value('DROP ROLE stranger');

# MERGE, where there is one
SKIP:
{
	skip 'MERGE came with PostgreSQL 15', 2 if $node->safe_psql('postgres', 'SHOW server_version_num') < 150000;
	refresh();
	$rows = value('SELECT rows FROM learnt');
	value(q{MERGE INTO items USING generate_series(1, 10) i ON items.id = i * 1000000 + i % 2 * -1000000 * i + i
		WHEN MATCHED THEN UPDATE SET v = vec(90000 + i) WHEN NOT MATCHED THEN INSERT (v) VALUES (vec(80000 + i))});
	is(value('SELECT count(*) FROM wrong'), 0, 'MERGE: right codes');
	refresh();
	is(value('SELECT rows FROM learnt') - $rows, 10, 'MERGE: all learnt');
}

# A table that is attached while it is empty gets its first model, and its rows their codes, by itself:
# of an owner that may not log in, with settings that would be in the way.
value(q{
	CREATE ROLE quiet NOLOGIN;
	ALTER DATABASE postgres SET default_transaction_isolation = 'serializable';
	ALTER DATABASE postgres SET statement_timeout = '20s';
	CREATE SCHEMA own AUTHORIZATION quiet;
	SET ROLE quiet;
	CREATE TABLE own.born (id int, v real[], who name);
	CREATE FUNCTION own.who() RETURNS trigger LANGUAGE plpgsql AS $$
	BEGIN
		BEGIN RESET ROLE; EXCEPTION WHEN insufficient_privilege THEN NULL; END;
		NEW.who := current_user;
		RETURN NEW;
	END $$;
	CREATE TRIGGER who BEFORE UPDATE ON own.born FOR EACH ROW EXECUTE FUNCTION own.who();
	SELECT sketcher_attach('own.born', 'v', 'code', 16)});
value(q{ALTER ROLE quiet SET transaction_timeout = '1ms'}) if $node->safe_psql('postgres', 'SHOW server_version_num') >= 170000;
value('INSERT INTO own.born SELECT i, vec(i) FROM generate_series(1, 500) i');
my $right = q{SELECT count(*) > 0 AND count(*) = count(code) AND bool_and(code = sketcher_hash('own.born_code_model'::regclass, v)) FROM own.born};
ok($node->poll_query_until('postgres', $right), 'rows get their codes by themselves');
is(value('SELECT string_agg(DISTINCT who, $$,$$) FROM own.born'), 'quiet', 'from a worker that is the owner, and cannot become more');
my $generation = value('SELECT generation FROM own.born_code_model');
value('INSERT INTO own.born SELECT i, vec(200000 + 3 * i) FROM generate_series(501, 5000) i');
ok($node->poll_query_until('postgres', "SELECT generation > $generation AND walk_table IS NULL FROM own.born_code_model"), 'and a new model when rows have come that change it');
ok($node->poll_query_until('postgres', $right), 'with all codes');
value('INSERT INTO own.born SELECT i, vec(i) FROM generate_series(5001, 5002) i');
value('DROP TABLE own.born');

# with many connections, each of which inserts a row, too; and no more than one worker runs
value(q{CREATE TABLE many (v real[]); SELECT sketcher_attach('many', 'v', 'code', 8)});
my $most = 0;
foreach my $i (1 .. 60)
{
	value("INSERT INTO many VALUES (vec($i))");
	my $running = value(q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'unifdiag refresh'});
	$most = $running if $running > $most;
}
ok($node->poll_query_until('postgres', 'SELECT count(code) > 8 FROM many'), 'rows of many connections lead to a model');
cmp_ok($most, '<=', 1, 'by one worker at a time');
$node->psql('postgres', q{CALL sketcher_refresh('many', 'code')});
is(value('SELECT (sketcher_info(learning)).rows >= 60 FROM many_code_model'), 't', 'that leaves none of them out');
value(q{CREATE TABLE filled AS SELECT vec(i) AS v FROM generate_series(1, 200) i; SELECT sketcher_attach('filled', 'v', 'code', 8, backfill => false)});
ok($node->poll_query_until('postgres', 'SELECT count(*) = count(code) FROM filled'), 'rows that were there are hashed in the background');
value('DROP TABLE many, filled');

# models of tables that are gone take no room in a connection
$other->query(q{DO $$
	BEGIN
		FOR i IN 1..100 LOOP
			CREATE TABLE passing AS SELECT vec(i) AS v FROM generate_series(1, 50) i;
			PERFORM sketcher_attach('passing', 'v', 'code', 32, auto_refresh => NULL);
			INSERT INTO passing (v) VALUES (vec(1));
			DROP TABLE passing;
		END LOOP;
	END $$});
cmp_ok($other->query(q{SELECT count(*) FROM pg_backend_memory_contexts WHERE name = 'unifdiag hash plan'}), '<=', 8, 'a connection keeps few models');

# subtransactions that begin after the end of a snapshot
value('CREATE TABLE busy (i int); CREATE TABLE calm (v real[]); INSERT INTO calm SELECT vec(i) FROM generate_series(1, 100) i');
value(q{SELECT sketcher_attach('calm', 'v', 'code', 16, auto_refresh => NULL)});
$writer->query('BEGIN; INSERT INTO busy VALUES (1)');
value('INSERT INTO busy VALUES (2)');
$writer->query('SAVEPOINT s; INSERT INTO busy VALUES (3)');
($code, $out, $err) = $node->psql('postgres', q{CALL sketcher_refresh('calm', 'code')});
is($code, 0, 'a subtransaction later than the snapshot') or diag($err);
$writer->query('ROLLBACK');

# what comes later in the transaction that attached a column is learnt, too
value('CREATE TABLE longer (v real[])');
$writer->query('BEGIN; INSERT INTO longer SELECT vec(i) FROM generate_series(1, 100) i');
value('INSERT INTO busy VALUES (4)');
$writer->query(q{SELECT sketcher_attach('longer', 'v', 'code', 16, auto_refresh => NULL); INSERT INTO longer SELECT vec(i) FROM generate_series(1001, 1200) i; COMMIT});
value(q{CALL sketcher_refresh('longer', 'code')}) for 1 .. 2;
is(value('SELECT (sketcher_info(learning)).rows FROM longer_code_model'), 300, 'rows that came after an attach, in its transaction');
value('DROP TABLE longer');

# a refresh leaves alone what somebody sets meanwhile
$writer->query('BEGIN; UPDATE calm_code_model SET auto_refresh = 0.25');
value('INSERT INTO calm SELECT vec(i) FROM generate_series(1001, 1100) i');
$other->send(q{CALL sketcher_refresh('calm', 'code')});
sleep 0.1 until value(q{SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'});
$writer->query('COMMIT');
$other->finish;
is(value('SELECT auto_refresh FROM calm_code_model'), 0.25, 'a setting that was changed while a refresh ran');

# a row that a trigger keeps as it is, and one on the same page that somebody holds
value(q{
	CREATE TABLE kept (id int, v real[]);
	INSERT INTO kept SELECT i, vec(i) FROM generate_series(1, 20) i;
	SELECT sketcher_attach('kept', 'v', 'code', 4, backfill => false, auto_refresh => NULL);
	CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF old.id = 1 THEN RETURN NULL; END IF; RETURN new; END $$;
	CREATE TRIGGER keep BEFORE UPDATE ON kept FOR EACH ROW EXECUTE FUNCTION keep()});
$writer->query('BEGIN; SELECT id FROM kept WHERE id = 20 FOR UPDATE');
my $transactions = value('SELECT pg_current_xact_id()');
($code, $out, $err) = $node->psql('postgres', q{SET lock_timeout = '1s'; CALL sketcher_refresh('kept', 'code')});
like($err, qr/canceling statement due to lock timeout/, 'a refresh waits for a row as long as it may');
cmp_ok(value('SELECT pg_current_xact_id()') - $transactions, '<', 20, 'and only waits');
$writer->query('ROLLBACK');
($code, $out, $err) = $node->psql('postgres', q{CALL sketcher_refresh('kept', 'code')});
like($err, qr/WARNING:  1 rows of table "kept" did not get the code/, 'then it ends');
is(value('SELECT count(code) FROM kept'), 19, 'with the others changed');
value('DROP TABLE kept, calm, busy');

# two columns of codes, and an owner whose refresh takes for ever: all others get their models in the background
sub attach_asleep
{
	my ($owner) = @_;
	value(qq{
		CREATE ROLE $owner;
		CREATE SCHEMA $owner AUTHORIZATION $owner;
		SET ROLE $owner;
		CREATE TABLE $owner.asleep (v real[]);
		SELECT sketcher_attach('$owner.asleep', 'v', 'code', 4, backfill => false, auto_refresh => 0);
		CREATE FUNCTION $owner.snooze() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN PERFORM pg_sleep(1000); RETURN new; END \$\$;
		CREATE TRIGGER snooze BEFORE UPDATE ON $owner.asleep FOR EACH ROW EXECUTE FUNCTION $owner.snooze()});
	# a connection asks at most once a second
	my ($end, $sleeps) = (time + 60, 'f');
	while (time < $end && $sleeps eq 'f')
	{
		$other->query("INSERT INTO $owner.asleep SELECT vec(i) FROM generate_series(1, 10) i");
		sleep 1.1;
		$sleeps = value(qq{SELECT count(*) > 0 FROM pg_stat_activity WHERE query LIKE 'sketcher_refresh of $owner.asleep%' AND wait_event = 'PgSleep'});
	}
	is($sleeps, 't', "a refresh of $owner sleeps");
	return;
}
attach_asleep('idle1');
value(q{
	CREATE TABLE twice (v real[]);
	SELECT sketcher_attach('twice', 'v', 'code1', 8), sketcher_attach('twice', 'v', 'code2', 12)});
my $end = time + 60;
while (time < $end && value('SELECT count(*) = 0 OR bool_or(code1 IS NULL OR code2 IS NULL) FROM twice') eq 't')
{
	$other->query('INSERT INTO twice SELECT vec(i) FROM generate_series(1, 20) i');
	sleep 1.1;
}
is(value('SELECT count(*) - count(code1), count(*) - count(code2) FROM twice'), '0|0', 'both columns get their codes by themselves, whatever others do');
value('DROP TABLE twice');

# with all workers taken, the next commit after one is free asks again
ok($node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'unifdiag refresh'}), 'one is left');
attach_asleep('idle2');
value('CREATE TABLE waiting (v real[])');
value(q{SELECT sketcher_attach('waiting', 'v', 'code', 8)});
sleep 1.1;
$other->query('INSERT INTO waiting SELECT vec(i) FROM generate_series(1, 100) i') for 1 .. 2;
is(value('SELECT count(code) FROM waiting'), 0, 'no codes without a worker');
# that connection may ask for the two first, since they have new rows, too: they have nothing to do any more
value("UPDATE $_.asleep_code_model SET auto_refresh = NULL") foreach 'idle1', 'idle2';
value(q{SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE backend_type = 'unifdiag refresh'});
$end = time + 60;
while (time < $end && value('SELECT count(code) FROM waiting') == 0)
{
	sleep 1.1;
	$other->query('CREATE TEMPORARY TABLE some_commit AS SELECT 1; DROP TABLE some_commit');
}
cmp_ok(value('SELECT count(code) FROM waiting'), '>', 0, 'a later commit of the same connection asks again, whatever it does');
value('DROP TABLE waiting');
value("DROP SCHEMA $_ CASCADE; DROP ROLE $_") foreach 'idle1', 'idle2';

# a table that is gone does not get in the way of a commit that would ask for its refresh
value('CREATE TABLE leaving (id int, v real[])');
value(q{SELECT sketcher_attach('leaving', 'v', 'code', 4)});
$other->query('INSERT INTO leaving SELECT i, vec(i) FROM generate_series(1, 50) i') for 1 .. 2;
$other->query('BEGIN; CREATE TABLE unconcerned ()');
sleep 1.5;
value('DROP TABLE leaving');
is($other->query('COMMIT; SELECT count(*) FROM unconcerned'), 0, 'a commit does not miss a table that is gone');

# gone with the table
value('DROP TABLE items CASCADE');
is(value(q{SELECT count(*) FROM pg_class WHERE relname LIKE 'items%'}), 0, 'the table takes all along');

$_->quit foreach @writers;
$node->stop;
unlike(slurp_file($node->logfile), qr/TRAP|PANIC|deadlock detected|could not open relation/, 'nothing went wrong behind the scenes');
done_testing();
