# Statements that are cancelled or whose connection is terminated, at any step; indexes built concurrently
# under load; extension and owner dropped while a refresh runs; bitmaps that remember only pages.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use IPC::Run;
use Items;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Session;
use Test::More;
use Time::HiRes qw(time usleep);

srand(20180415);
my $steps = $ENV{UNIFDIAG_KILLS} // 8;
my $node = PostgreSQL::Test::Cluster->new('interrupted');
$node->init;
$node->append_conf('postgresql.conf', $Items::settings);
$node->append_conf('postgresql.conf', "autovacuum = off\nfsync = off\nrestart_after_crash = off\nmax_connections = 30\n");
$node->start;
sub value
{
	my ($sql, $database) = @_;
	return $node->safe_psql($database // 'postgres', $sql);
}
value(qq{
	CREATE EXTENSION unifdiag;
	$Items::functions
	CREATE TABLE items ($Items::columns);
	INSERT INTO items SELECT $Items::row FROM generate_series(1, 30000) i;
	CREATE TABLE photos (id int, v real[]);
	INSERT INTO photos SELECT i, vector_of(i) FROM generate_series(1, 3000) i});
Items::create_indexes($node, 'postgres', 'items');
# one that is connected already, so as to be in time
my $interrupter = Session->new($node);

# Runs a statement to its end, to know how long it takes, and then again and again, interrupted after a
# part of that time; $before makes it ready, $after says what must hold whatever has happened.
sub interrupt
{
	my ($name, $before, $statement, $after) = @_;
	value($before);
	my $start = time;
	value($statement);
	my $whole = time - $start;
	my ($wrong, $cancelled) = (0, 0);
	# more of them if it has always been too fast for us
	foreach my $try (0 .. 4 * $steps)
	{
		last if $try > $steps && $cancelled > 0;
		my $step = $try <= $steps ? $try : rand $steps;
		foreach my $way ('pg_cancel_backend', 'pg_terminate_backend')
		{
			value($before);
			my $session = Session->new($node);
			my $pid = $session->query('SELECT pg_backend_pid()');
			$session->send($statement);
			usleep(1e6 * $whole * $step / $steps);
			$interrupter->query("SELECT $way($pid)");
			if ($way eq 'pg_cancel_backend')
			{
				my ($out, $error) = $session->finish;
				$cancelled++ if $error =~ /canceling/;
				$session->quit;
			}
			else
			{
				$node->poll_query_until('postgres', "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $pid)");
				$session->abandon;
			}
			my $result = value($after);
			$result =~ s/\n//g;
			$wrong++ if $result ne '';
			diag("$name, $way at step $step: $result") if $result ne '';
		}
	}
	is($wrong, 0, "$name: nothing is wrong after it was interrupted");
	cmp_ok($cancelled, '>', 0, "$name: it was cancelled $cancelled times before it ended");
	return;
}

# statements that print nothing if all is well
my $photos_are_right = q{SELECT count(*) || ' wrong codes' FROM photos WHERE code IS DISTINCT FROM sketcher_hash('photos_code_model'::regclass, v) HAVING count(*) > 0};
interrupt('attach', q{DO $$ BEGIN IF to_regclass('photos_code_model') IS NOT NULL THEN PERFORM sketcher_detach('photos', 'code'); END IF; ALTER TABLE photos DROP COLUMN IF EXISTS code; END $$},
	q{SELECT sketcher_attach('photos', 'v', 'code', 8, auto_refresh => NULL)},
	# all of it, or nothing
	q{SELECT 'half an attachment' FROM (SELECT count(*) AS parts FROM (SELECT 1 FROM pg_class WHERE relname = 'photos_code_model' UNION ALL SELECT 1 FROM pg_trigger WHERE tgname LIKE 'zz%' UNION ALL
		SELECT 1 FROM pg_attribute WHERE attrelid = 'photos'::regclass AND attname = 'code') p) q WHERE parts NOT IN (0, 3)});
value(q{DO $$ BEGIN IF to_regclass('photos_code_model') IS NULL THEN PERFORM sketcher_attach('photos', 'v', 'code', 8, auto_refresh => NULL); END IF; END $$});
value('CREATE INDEX photos_code ON photos USING hamming (code)');
# a refresh that was interrupted is finished by the next one
interrupt('refresh', q{INSERT INTO photos SELECT i, vector_of((random() * 1000000)::int) FROM generate_series(1, 500) i}, q{CALL sketcher_refresh('photos', 'code', batch => 100)},
	"SET client_min_messages = error; CALL sketcher_refresh('photos', 'code'); $photos_are_right; SELECT hamming_check('photos_code')");
foreach my $search (@Items::searches)
{
	my $kind = $search->{kind};
	interrupt("$kind build", "DROP INDEX IF EXISTS items_again", "CREATE INDEX items_again ON items $search->{index}",
		"SELECT $search->{check}(oid) FROM pg_class WHERE relname = 'items_again'");
	interrupt("$kind vacuum", "UPDATE items SET code = code_of(id + (random() * 100)::int), v = vector_of(id + (random() * 100)::int) WHERE id % 5 = (random() * 4)::int", 'VACUUM items',
		"SELECT $search->{check}('items_$kind')");
}
$interrupter->quit;
value('DROP INDEX IF EXISTS items_again');
Items::indexes_are_right($node, 'postgres', 'items', 'after all that');

# what a build is doing can be seen: an expression makes each row take a while
value(q{
	CREATE TABLE slow AS SELECT i AS id, vector_of(i) AS v, code_of(i) AS code FROM generate_series(1, 1500) i;
	CREATE FUNCTION slowly(anyelement) RETURNS anyelement LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM pg_sleep(0.001); RETURN $1; END $$});
my %phases = ('hamming (slowly(code))' => 'scanning table', 'sketch (slowly(v)) WITH (bits = 16)' => 'learning, scanning table');
foreach my $method (sort keys %phases)
{
	my $session = Session->new($node);
	my %seen;
	$session->send("CREATE INDEX ON slow USING $method");
	until ($session->is_done)
	{
		my $phase = value(q{SELECT substring(phase, '^building index: (.*)') FROM pg_stat_progress_create_index WHERE relid = 'slow'::regclass});
		$seen{$phase} = 1 if $phase ne '' && $phase ne 'initializing';
	}
	is(join(', ', sort keys %seen), $phases{$method}, "phases of a build: $method");
	$session->quit;
}

# CREATE and REINDEX INDEX CONCURRENTLY while others write
my $directory = PostgreSQL::Test::Utils::tempdir();
append_to_file("$directory/write.sql", join("\n", "INSERT INTO items SELECT $Items::row FROM (SELECT (random() * 100000)::int AS i) r;",
	'UPDATE items SET code = code_of(-id), v = vector_of(-id) WHERE id = (random() * 10000)::int;', 'DELETE FROM items WHERE id = (random() * 10000)::int;', ''));
my $output = '';
my $load = IPC::Run::start([ 'pgbench', '-n', '-c', 4, '-T', 8, '--random-seed', 20180415, '-h', $node->host, '-p', $node->port, '-f', "$directory/write.sql", 'postgres' ], '<', \undef, '>&', \$output);
foreach my $search (@Items::searches)
{
	value("CREATE INDEX CONCURRENTLY items_again ON items $search->{index}");
	value("REINDEX INDEX CONCURRENTLY items_$search->{kind}");
	value("SELECT $search->{check}('items_again')");
	value('DROP INDEX CONCURRENTLY items_again');
}
value('REINDEX TABLE CONCURRENTLY items');
ok($load->finish && $output !~ /ERROR|FATAL|aborted/, 'others write while indexes are built concurrently') or diag($output);
is(value(q{SELECT count(*) FROM pg_index WHERE NOT indisvalid}), 0, 'all indexes are valid');
Items::indexes_are_right($node, 'postgres', 'items', 'built concurrently');

# bitmaps that remember only pages
my $within = q{SELECT count(*), sum(id) FROM broad WHERE hamming_within(code, code_of(7), 30)};
my $lossy = "SET work_mem = '64kB'; SET enable_seqscan = off; SET enable_indexscan = off; SET enable_indexonlyscan = off; ";
value(q{CREATE TABLE broad AS SELECT i AS id, code_of(i) AS code, repeat('x', 1000) AS filler FROM generate_series(1, 20000) i; CREATE INDEX ON broad USING hamming (code)});
value('VACUUM ANALYZE broad');
like(value("$lossy EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off) $within"), qr/lossy=[1-9]/, 'a bitmap is lossy');
is(value($lossy . $within), value("SET enable_bitmapscan = off; SET enable_indexscan = off; SET enable_indexonlyscan = off; $within"), 'and the answer is right');

# extension and owner go while a refresh runs
foreach my $drop ('DROP EXTENSION unifdiag CASCADE', 'DROP OWNED BY somebody CASCADE', 'DROP TABLE photos')
{
	$node->safe_psql('postgres', 'CREATE DATABASE going');
	value(qq{
		CREATE EXTENSION unifdiag;
		$Items::functions
		CREATE ROLE somebody;
		GRANT ALL ON SCHEMA public TO somebody;
		CREATE TABLE photos (id int, v real[]);
		ALTER TABLE photos OWNER TO somebody;
		INSERT INTO photos SELECT i, vector_of(i) FROM generate_series(1, 500) i;
		SELECT sketcher_attach('photos', 'v', 'code', 8, auto_refresh => NULL);
		INSERT INTO photos SELECT i, vector_of(i * 17) FROM generate_series(501, 6000) i;
		-- all codes are wrong, and each takes a while, so that there is much to do
		ALTER TABLE photos DISABLE TRIGGER zz_unifdiag_code_hash;
		UPDATE photos SET code = ~ code;
		ALTER TABLE photos ENABLE ALWAYS TRIGGER zz_unifdiag_code_hash;
		CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN PERFORM pg_sleep(0.002); RETURN NEW; END \$\$;
		CREATE TRIGGER dawdle BEFORE UPDATE ON photos FOR EACH ROW EXECUTE FUNCTION dawdle()}, 'going');
	my $session = Session->new($node, 'going');
	$session->query('SELECT 1');
	$session->send(q{CALL sketcher_refresh('photos', 'code', batch => 2)});
	usleep(1_000) until $session->is_done || value(q{SELECT count(*) FROM pg_stat_activity WHERE datname = 'going' AND query LIKE 'sketcher_refresh of %: page %'});
	ok(!$session->is_done, 'a refresh is seen to run') or diag($session->{err});
	my ($status, $out, $error);
	# DROP locks what it drops in an order of its own, and so may be chosen to end a deadlock
	do { ($status, $out, $error) = $node->psql('going', "SET lock_timeout = '60s'; $drop") } while ($status != 0 && $error =~ /deadlock detected/);
	is($status, 0, "$drop while a refresh runs") or diag($error);
	my ($said, $why) = $session->finish;
	unlike($why, qr/cache lookup|XX000|server closed/, 'the refresh ends, or says why not');
	$session->quit;
	$node->safe_psql('postgres', 'DROP DATABASE going');
	$node->safe_psql('postgres', 'DROP ROLE somebody');
}

$node->stop;
unlike(slurp_file($node->logfile), qr/TRAP|PANIC|terminated by signal/, 'nothing crashed');
done_testing();
