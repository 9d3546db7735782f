# Living in a table, with many writers at once: nobody waits, nothing is lost, nothing that was
# rolled back is learnt, and a refresh in the midst of it leaves no wrong code.
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
$node->append_conf('postgresql.conf', "fsync = off\nmax_prepared_transactions = 5\nautovacuum = off\nmax_connections = 60\nsynchronous_commit = local");
$node->start;

$node->safe_psql('postgres', q{
	CREATE EXTENSION unifdiag;
	CREATE FUNCTION vec(i int) RETURNS real[] LANGUAGE sql IMMUTABLE
		AS 'SELECT ARRAY(SELECT sin(i::float8 * k) * (1 + k % 5) + CASE WHEN i > 1000 THEN cos(i::float8 * k * k) * (k % 7) ELSE 0 END FROM generate_series(1, 32) k)::real[]';
	CREATE TABLE items (id serial PRIMARY KEY, v real[], note text);
	INSERT INTO items (v) SELECT vec(i) FROM generate_series(1, 100) i;
	SELECT sketcher_attach('items', 'v', 'code', 16);
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
is(value('SELECT count(*) FROM items_code_pending'), 0, 'nothing is to be learnt before they commit');
$writers[$_]->query($_ % 2 ? 'COMMIT' : 'ROLLBACK') foreach 0 .. 15;
cmp_ok(time - $start, '<', 15, 'all of it in no time');
is(value('SELECT sum(rows) FROM items_code_pending'), 8, 'what was committed waits to be learnt');
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
ok(!$other->is_done, 'refresh looks out for transactions that have used the model of before');
my ($code, $out, $err) = $node->psql('postgres', q{CALL sketcher_refresh('items', 'code')});
like($err, qr/column "code" of table "items" is being refreshed already/, 'a second refresh is told');
is($writers[2]->query('UPDATE items SET note = 1 WHERE id <= 3; SELECT 1'), 1, 'and others write');
like(value(q{SELECT string_agg(query, ' ') FROM pg_stat_activity}), qr/sketcher_refresh of public.items: \d+ of \d+ pages, \d+ codes changed/, 'progress in pg_stat_activity');
cmp_ok(value('SELECT count(*) FROM wrong'), '==', 0, 'what is committed is right already');
my $rows = value('SELECT rows FROM learnt');
is($writer->query(q{SELECT count(*) > 0 FROM wrong}), 't', 'the codes of the open transaction are those of before');
$writer->query('COMMIT');
($out, $err) = $other->finish;
unlike($err, qr/WARNING|ERROR/, 'refresh ends when the transaction has');
is(value('SELECT count(*) FROM wrong'), 0, 'and its codes are right then');

# Rows that others have locked are not waited for while anything is held, nor forgotten.
$writer->query('BEGIN; SELECT count(*) FROM (SELECT id FROM items WHERE id % 7 = 0 FOR UPDATE) locked');
value('INSERT INTO items (v) SELECT vec(i) FROM generate_series(1, 4000) i');
$other->send(q{CALL sketcher_refresh('items', 'code', batch => 50)});
sleep 0.1 until value('SELECT generation FROM items_code_model') >= 5;
is($writers[2]->query(q{SET statement_timeout = '5s'; UPDATE items SET note = 2 WHERE id % 7 = 1; SELECT 1}), 1, 'refresh does not hold up others');
$writer->query('COMMIT');
($out, $err) = $other->finish;
unlike($err, qr/WARNING|ERROR/, 'refresh ends when the rows are free');
is(value('SELECT count(*) FROM wrong'), 0, 'all codes are right');

# it gives up in the end, and says so
$writer->query('BEGIN; INSERT INTO items (v) SELECT vec(5000 + i) FROM generate_series(1, 20) i');
value('INSERT INTO items (v) SELECT vec(6000 + i) FROM generate_series(1, 2000) i');
like(refresh(), qr/WARNING:  some codes of table "items" may still be those of the previous model/, 'a transaction that does not end is not waited for forever');
$writer->query('COMMIT');
refresh();
is(value('SELECT count(*) FROM wrong'), 0, 'the next refresh makes all right');

# Writers, changers and repeated refreshes, all at once.
value(q{UPDATE items_code_model SET generation = 0; CREATE TABLE counted (rows int)});
$rows = value('SELECT rows FROM learnt');
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
is(value('SELECT rows FROM learnt') - $rows, value('SELECT sum(rows) FROM counted'), 'rows learnt are rows committed');
is(value('SELECT count(*) FROM wrong'), 0, 'all codes are right');

# Two columns are refreshed at once: one slowly, a row at a time, the other in the meantime.
value(q{
	CREATE TABLE pairs (id int PRIMARY KEY, v real[], filler text DEFAULT repeat('x', 1000));
	INSERT INTO pairs SELECT i, vec(i) FROM generate_series(1, 25) i;
	SELECT sketcher_attach('pairs', 'v', 'slow', 16), sketcher_attach('pairs', 'v', 'fast', 16, seed => 1);
	CREATE INDEX ON pairs USING hamming (slow);
	CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.5); RETURN new; END $$;
	CREATE TRIGGER wait BEFORE UPDATE ON pairs FOR EACH ROW WHEN (old.slow IS DISTINCT FROM new.slow) EXECUTE FUNCTION wait();
	ALTER TABLE pairs DISABLE TRIGGER zz_unifdiag_slow_hash, DISABLE TRIGGER zz_unifdiag_fast_hash, DISABLE TRIGGER wait;
	UPDATE pairs SET slow = NULL, fast = NULL;
	ALTER TABLE pairs ENABLE ALWAYS TRIGGER zz_unifdiag_slow_hash, ENABLE ALWAYS TRIGGER zz_unifdiag_fast_hash, ENABLE TRIGGER wait});
my $progress = q{SELECT count(*) FROM pg_stat_activity WHERE query ~ 'sketcher_refresh of public.pairs: [1-9]\d* of \d+ pages, [1-9]\d* codes changed' AND pid <> pg_backend_pid()};
$other->send(q{CALL sketcher_refresh('pairs', 'slow', batch => 1)});
sleep 0.1 until $other->is_done || value($progress) > 0;
($code, $out, $err) = $node->psql('postgres', q{CALL sketcher_refresh('pairs', 'fast')});
like($err, qr/^[^\n]*NOTICE:  table "pairs": 25 codes changed\n*$/, 'one column is refreshed while another is');
ok(!$other->is_done, 'which goes on');
is(value(q{SELECT count(*) FROM pairs WHERE fast IS DISTINCT FROM sketcher_hash('pairs_fast_model'::regclass, v)}), 0, 'and does not undo it');
is(value(q{SET enable_seqscan = off; SELECT count(*) FROM (SELECT id FROM pairs ORDER BY slow <~> sketcher_hash('pairs_slow_model'::regclass, vec(3)) LIMIT 25) found}), 25, 'searches find all rows meanwhile');
($out, $err) = $other->finish;
like($err, qr/NOTICE:  sketcher_refresh of public.pairs: \d+ of \d+ pages, \d+ codes changed\n/, 'a notice tells now and then how far it is');
like($err, qr/NOTICE:  table "pairs": 25 codes changed/, 'the other is refreshed, too');
unlike($err, qr/WARNING|ERROR/, 'and has no trouble');
is(value(q{SELECT count(*) FROM pairs WHERE fast IS DISTINCT FROM sketcher_hash('pairs_fast_model'::regclass, v) OR slow IS DISTINCT FROM sketcher_hash('pairs_slow_model'::regclass, v)}), 0, 'all codes of both are right');

# two-phase commit
$rows = value('SELECT rows FROM learnt');
value(q{BEGIN; INSERT INTO items (v) VALUES (vec(1)); PREPARE TRANSACTION 'one'});
value(q{BEGIN; INSERT INTO items (v) VALUES (vec(2)); PREPARE TRANSACTION 'two'});
is(value('SELECT count(*) FROM items_code_pending'), 0, 'what is prepared is not learnt yet');
value(q{COMMIT PREPARED 'one'});
value(q{ROLLBACK PREPARED 'two'});
refresh();
is(value('SELECT rows FROM learnt') - $rows, 1, 'what is committed then is');

# isolation levels: the newest model is used, and learning does not get in the way
foreach my $level ('repeatable read', 'serializable')
{
	$writer->query("BEGIN ISOLATION LEVEL $level; SELECT count(*) FROM items");
	value('INSERT INTO items (v) SELECT vec(7000 + i) FROM generate_series(1, 500) i');
	refresh();
	is($writer->query('INSERT INTO items (v) VALUES (vec(9)); COMMIT; SELECT count(*) FROM wrong'), 0, "right codes at $level");
	value(qq{SET default_transaction_isolation = '$level'; CALL sketcher_refresh('items', 'code')});
	is(value('SELECT count(*) FROM wrong'), 0, "refresh at $level");
}

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

# many rows are learnt without anybody asking, and what that needs stays small
$rows = value('SELECT rows FROM learnt');
value('INSERT INTO items (v) SELECT vec(100000 + i) FROM generate_series(1, 20000) i');
ok($node->poll_query_until('postgres', "SELECT rows = $rows + 20000 FROM learnt"), 'a worker learns what was committed');
refresh();
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'unifdiag learner'"), 'a refresh leaves a worker to clear up');
value('INSERT INTO items (v) SELECT vec(130000 + i) FROM generate_series(1, 3000) i');
ok($node->poll_query_until('postgres', "SELECT rows = $rows + 23000 FROM learnt"), 'which learns what is committed meanwhile');
$writer->query(q{DO $$ BEGIN FOR i IN 1..10000 LOOP INSERT INTO items (v) VALUES (vec(i)); COMMIT; END LOOP; END $$});
# But for the last: 64 pages of them, some 2800, are not due yet; twice as many on a busy machine, where
# the table may be longer.
ok($node->poll_query_until('postgres', "SELECT rows > $rows + 30000 FROM learnt"), 'also single rows');
ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'unifdiag learner'"), 'the worker leaves');
cmp_ok(value(q{SELECT pg_total_relation_size('items_code_model') + pg_total_relation_size('items_code_pending')}), '<', 2_000_000, 'the tables stay small');
refresh();
is(value('SELECT rows FROM learnt') - $rows, 33000, 'and nothing is lost');

# Writers that are faster than learning make a pause after each commit.  Here learning stands still: the worker,
# who has asked for pauses, waits for a lock that writers do not need.
value(q{
	CREATE TABLE wide (v real[]);
	INSERT INTO wide SELECT ARRAY(SELECT sin(i::float8 * k) FROM generate_series(1, 700) k)::real[] FROM generate_series(1, 200) i;
	CREATE TABLE flooded AS SELECT v FROM wide LIMIT 100;
	SELECT sketcher_attach('flooded', 'v', 'code', 64)});
sub flood
{
	my ($count) = @_;
	return "DO \$\$ BEGIN FOR i IN 1..$count LOOP INSERT INTO flooded (v) SELECT v FROM wide LIMIT 1 OFFSET i % 100; COMMIT; END LOOP; END \$\$";
}
my $waiting = q{SELECT count(*) = 1 FROM pg_locks WHERE relation = 'flooded_code_model'::regclass AND NOT granted};
$other->query('BEGIN; LOCK TABLE flooded_code_model IN SHARE MODE');
value('INSERT INTO flooded (v) SELECT v FROM wide');
ok($node->poll_query_until('postgres', $waiting), 'many rows at once are due');
$other->query('COMMIT');
# it holds its lock 4 from then on, until it leaves
ok($node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND classid = 'flooded_code_model'::regclass AND objid = 4}), 'the worker asks for pauses');
$other->query('BEGIN; LOCK TABLE flooded_code_model IN SHARE MODE');
ok($node->poll_query_until('postgres', $waiting), 'learning stands still');
value(flood(1200));
my $most = value(q{SELECT pg_relation_size('flooded_code_pending')});
cmp_ok($most, '>', 10 * value('SELECT (sketcher_info(published)).bytes FROM flooded_code_model'), 'more than ten models wait');
$start = time;
value(flood(1000));
cmp_ok(time - $start, '>=', 1, 'a thousand commits take a thousand pauses');
$other->query('COMMIT');
ok($node->poll_query_until('postgres', "SELECT pg_relation_size('flooded_code_pending') < $most / 2"), 'the worker truncates the table when it has learnt');

# also while others write; and nothing is lost
$_->send(flood(400)) foreach @writers[ 0 .. 7 ];
foreach my $i (0 .. 7)
{
	my ($printed, $error) = $writers[$i]->finish;
	is($error, '', "writer $i of a flood had no trouble");
}
value(q{CALL sketcher_refresh('flooded', 'code')});
is(value('SELECT (sketcher_info(learning)).rows FROM flooded_code_model'), 100 + 200 + 2200 + 8 * 400, 'all of them are learnt');

# a worker that is there learns what comes meanwhile
my $learners = q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'unifdiag learner'};
# so many that their delta keeps no rows, and is small
my $many = 'INSERT INTO items (v) SELECT vec(i) FROM generate_series(1, 4000) i';
refresh();
$rows = value('SELECT rows FROM learnt');
$node->poll_query_until('postgres', $learners, '0') or die 'a worker does not leave';
value($many);
$node->poll_query_until('postgres', "SELECT rows = $rows + 4000 FROM learnt") or die 'no worker comes';
value($many);
ok($node->poll_query_until('postgres', "SELECT rows = $rows + 8000 FROM learnt"), 'a worker learns what comes while it is there');

# and what is committed when it leaves, by a transaction that has found it there: this one waits for
# a replica that does not exist, and nobody sees its rows until it need not any longer
$node->append_conf('postgresql.conf', "synchronous_standby_names = 'none'");
$node->reload;
$writer->query('SET synchronous_commit = on');
value($many);
$node->poll_query_until('postgres', $learners, '1') or die 'no worker comes';
$writer->send($many);
$node->poll_query_until('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND backend_type = 'client backend'}, '1')
	or die 'the transaction does not wait';
$node->poll_query_until('postgres', $learners, '0') or die 'the worker does not leave';
$node->append_conf('postgresql.conf', "synchronous_standby_names = ''");
$node->reload;
$writer->finish;
ok($node->poll_query_until('postgres', "SELECT rows = $rows + 16000 FROM learnt"), 'nor is anything forgotten when it leaves');

# gone with the table, also while a worker is at it
value('INSERT INTO items (v) SELECT vec(i) FROM generate_series(1, 5000) i');
value('DROP TABLE items CASCADE');
is(value(q{SELECT count(*) FROM pg_class WHERE relname LIKE 'items%'}), 0, 'the table takes all along');

$_->quit foreach @writers;
$node->stop;
unlike(slurp_file($node->logfile), qr/TRAP|PANIC|deadlock detected|could not open relation/, 'nothing went wrong behind the scenes');
done_testing();
