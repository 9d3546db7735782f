# A refresh that is cut short by a crash, a cancel or a terminated connection goes on where it was, also
# if its backend or the whole server is killed at any moment; and a server without background workers.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HammingLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Session;
use Test::More;
use Time::HiRes qw(sleep usleep);

my $node = PostgreSQL::Test::Cluster->new('crash');
$node->init;
$node->append_conf('postgresql.conf', "fsync = off\nautovacuum = off\nmax_wal_size = 2GB\nmax_prepared_transactions = 2\nrestart_after_crash = on");
$node->start;
sub value { return $node->safe_psql('postgres', $_[0]); }

$node->safe_psql('postgres', q{
	CREATE EXTENSION unifdiag;
	CREATE FUNCTION vec(i int) RETURNS real[] LANGUAGE sql IMMUTABLE
		AS 'SELECT ARRAY(SELECT sin(i::float8 * k) * (1 + k % 5) + CASE WHEN i > 1000 THEN cos(i::float8 * k * k) * (k % 7) ELSE 0 END FROM generate_series(1, 32) k)::real[]';
	-- so that a refresh takes some time
	CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.0005); RETURN new; END $$;
});
make_items();

# The table, with most of its rows to be learnt by the next refresh.
sub make_items
{
	value(q{
	DROP TABLE IF EXISTS items CASCADE;
	CREATE TABLE items (id serial, v real[], note text) PARTITION BY RANGE (id);
	CREATE TABLE items_1 PARTITION OF items FOR VALUES FROM (0) TO (6000);
	CREATE TABLE items_2 PARTITION OF items FOR VALUES FROM (6000) TO (1000000);
	INSERT INTO items (v) SELECT vec(i) FROM generate_series(1, 100) i;
	SELECT sketcher_attach('items', 'v', 'code', 16, auto_refresh => NULL);
	INSERT INTO items (v) SELECT vec(i) FROM generate_series(101, 12000) i;
	CREATE TRIGGER slow BEFORE UPDATE ON items FOR EACH ROW EXECUTE FUNCTION slow();
	CREATE VIEW wrong AS SELECT id FROM items WHERE code IS DISTINCT FROM sketcher_hash('items_code_model'::regclass, v);
	CREATE VIEW walk AS SELECT walk_table, walk_page, generation FROM items_code_model;
	});
	return;
}

# Starts a refresh in small steps, and returns when it has done some pages of that partition.
sub start_refresh
{
	my ($session, $partition) = @_;
	$session->send(q{CALL sketcher_refresh('items', 'code', batch => 5)});
	sleep 0.02 until value("SELECT count(*) FROM walk WHERE walk_table = '$partition'::regclass AND walk_page > 3") == 1 || $session->is_done;
	ok(!$session->is_done, "a refresh is at $partition");
	return;
}

# What the next one does; it must not start from the beginning.
sub resume
{
	my ($how, $partition) = @_;
	is(value('SELECT walk_table FROM walk'), $partition, "$how: the position is stored");
	cmp_ok(value('SELECT count(*) FROM wrong'), '>', 0, "$how: wrong codes are left");
	value('ALTER TABLE items DISABLE TRIGGER slow');
	my ($code, $out, $err) = $node->psql('postgres', q{CALL sketcher_refresh('items', 'code')});
	like($err, qr/finishing an earlier refresh/, "$how: the next refresh goes on");
	unlike($err, qr/ERROR|WARNING/, "$how: and ends well");
	is(value('SELECT count(*) FROM wrong'), 0, "$how: all codes are right");
	is(value('SELECT walk_table IS NULL FROM walk'), 't', "$how: the refresh is over");
	is(value('SELECT (sketcher_info(learning)).rows >= (SELECT count(*) FROM items) FROM items_code_model'), 't', "$how: all rows are learnt");
	return;
}

# Rows that change the model, and with that most codes.
sub disturb
{
	my ($from) = @_;
	value("INSERT INTO items (v) SELECT vec($from + i * i) FROM generate_series(1, 3000) i");
	value('ALTER TABLE items ENABLE TRIGGER slow');
	return;
}

# a crash
my $session = Session->new($node);
start_refresh($session, 'items_2');
is(value(q{SELECT count(*) FROM (SELECT id FROM items_1 INTERSECT SELECT id FROM wrong) t}), 0, 'the partition before is done');
$node->stop('immediate');
$node->start;
resume('crash', 'items_2');
$session->abandon;

# a crash while transactions are on their way
$session = Session->new($node);
my $writer = Session->new($node);
disturb(20000);
start_refresh($session, 'items_1');
$writer->query(q{BEGIN; INSERT INTO items (v) SELECT vec(i) FROM generate_series(1, 10) i});
$node->stop('immediate');
$node->start;
resume('crash in the first partition', 'items_1');
$_->abandon foreach $session, $writer;

# a cancel, and the same session goes on
$session = Session->new($node);
disturb(300000);
start_refresh($session, 'items_1');
value(q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE '%sketcher_refresh of%' AND pid <> pg_backend_pid()});
my ($out, $err) = $session->finish;
like($err, qr/canceling statement due to user request/, 'cancelled');
resume('cancel', 'items_1');

# a connection that is terminated
disturb(600000);
start_refresh($session, 'items_2');
value(q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%sketcher_refresh of%' AND pid <> pg_backend_pid()});
$node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE query LIKE '%sketcher_refresh of%' AND pid <> pg_backend_pid()});
resume('terminated', 'items_2');
$session->abandon;

# the table is rewritten in the meantime: pages mean nothing any more
$session = Session->new($node);
disturb(900000);
start_refresh($session, 'items_2');
$node->stop('immediate');
$node->start;
value('VACUUM FULL items_2');
resume('rewritten', 'items_2');
$session->abandon;

# a backend, or all of the server, killed at any moment of a refresh
my @kills = (
	'kill of the backend' => sub {
		my ($pid) = @_;
		kill 'KILL', $pid;
		# all others go with it
		usleep(10_000) while kill 0, $pid;
		$node->poll_query_until('postgres', 'SELECT true') or die;
	},
	'kill of the server' => sub {
		HammingLoad::kill_server($node);
		$node->start;
	},
	'immediate stop' => sub {
		$node->stop('immediate');
		$node->start;
	});
srand(20180415);
foreach my $round (0 .. ($ENV{UNIFDIAG_KILLS} // 3) - 1)
{
	my ($how, $kill) = @kills[ 2 * ($round % 3), 2 * ($round % 3) + 1 ];
	my $part = $round % 2 ? 'items_2' : 'items_1';
	make_items();
	$session = Session->new($node);
	my $pid = $session->query('SELECT pg_backend_pid()');
	start_refresh($session, $part);
	usleep(rand(300_000));
	$kill->($pid);
	resume("$how, round $round", $part);
	$session->abandon;
}

# a server without workers: nothing comes by itself, and nothing is lost
value('ALTER TABLE items DISABLE TRIGGER slow');
value(q{ALTER SYSTEM SET max_worker_processes = 0; UPDATE items_code_model SET auto_refresh = 0});
$node->restart;
my $rows = value('SELECT (sketcher_info(learning)).rows FROM items_code_model');
value('INSERT INTO items (v) SELECT vec(i) FROM generate_series(1, 20000) i');
value("BEGIN; INSERT INTO items (v) SELECT vec(i) FROM generate_series(1, $_) i; PREPARE TRANSACTION '$_'") foreach 3, 7;
$node->stop('immediate');
$node->start;
value(q{COMMIT PREPARED '3'});
value(q{ROLLBACK PREPARED '7'});
value(q{CALL sketcher_refresh('items', 'code')});
is(value('SELECT (sketcher_info(learning)).rows FROM items_code_model') - $rows, 20003, 'without workers: the refresh learns all, with the rows of a prepared transaction');
is(value('SELECT count(*) FROM wrong'), 0, 'without workers: all codes are right');

$node->stop;
unlike(slurp_file($node->logfile), qr/TRAP|PANIC/, 'nothing went wrong behind the scenes');
done_testing();
