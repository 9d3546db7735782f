# A table with a hamming index under load, for the tests of crashes, replicas and concurrency.
package HammingLoad;
use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Utils;
use Test::More;

# how often to kill, and how long to load: more in a soak
our $kills = $ENV{UNIFDIAG_KILLS} // 8;
our $seconds = $ENV{UNIFDIAG_SECONDS} // 15;

# settings under which mistakes show: full checks of replayed pages, and VACUUM all the time
our $settings = q{
	wal_consistency_checking = 'all'
	checkpoint_timeout = 1h
	max_wal_size = 10GB
	autovacuum_naptime = 1s
	autovacuum_vacuum_cost_delay = 0
	synchronous_commit = off
	max_connections = 40
	log_min_messages = warning
};

# Tables of two code lengths, indexed.  The long codes are so long that of most only a part is read.
sub create
{
	my ($node) = @_;
	$node->safe_psql('postgres', q{
		CREATE EXTENSION unifdiag;
		CREATE FUNCTION random_code(bits int) RETURNS bithash LANGUAGE sql VOLATILE AS
			$$ SELECT left(string_agg((('x' || md5(random()::text))::bit(128))::text, ''), bits)::bithash FROM generate_series(0, (bits - 1) / 128) $$;
		CREATE TABLE short (id serial, code bithash(64)) WITH (autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0);
		CREATE TABLE long (id serial, code bithash) WITH (autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0);
		INSERT INTO short (code) SELECT random_code(64) FROM generate_series(1, 3000);
		INSERT INTO long (code) SELECT random_code(4001) FROM generate_series(1, 2500);
		CREATE INDEX short_code ON short USING hamming (code);
		CREATE INDEX long_code ON long USING hamming (code);
	});
	return;
}

my %scripts = (
	# with records of our own, and with generic ones
	insert => q{
		SELECT set_config('unifdiag.private_interfaces', (random() < 0.5)::text, false);
		INSERT INTO short (code) SELECT CASE WHEN random() < 0.95 THEN random_code(64) END FROM generate_series(1, 30);
		INSERT INTO long (code) VALUES (random_code(4001)), (NULL);
		INSERT INTO long (code) SELECT code FROM long WHERE code IS NOT NULL ORDER BY id DESC LIMIT 1;
	},
	update => q{
		UPDATE short SET code = random_code(64) WHERE id IN (SELECT id FROM short ORDER BY random() LIMIT 5);
		UPDATE long SET code = random_code(4001) WHERE id IN (SELECT id FROM long ORDER BY random() LIMIT 2);
	},
	delete => q{
		DELETE FROM short WHERE id IN (SELECT id FROM short ORDER BY random() LIMIT 20);
		DELETE FROM long WHERE id < (SELECT max(id) - 4000 FROM long);
	},
	rollback => q{
		BEGIN;
		INSERT INTO short (code) SELECT random_code(64) FROM generate_series(1, 50);
		ROLLBACK;
	},
	# by the index and without it, in one snapshot: the same codes at the same distances, or an error
	search => q{
		SELECT random_code(64) AS q \gset
		SELECT code AS l FROM long WHERE code IS NOT NULL ORDER BY id DESC LIMIT 1 \gset
		BEGIN ISOLATION LEVEL REPEATABLE READ;
		SET LOCAL enable_seqscan = off;
		SET LOCAL enable_sort = off;
		SELECT count(*) AS by_index, coalesce(md5(string_agg(d::text, ',')), 'none') AS distances FROM (SELECT code <~> ':q' AS d FROM short ORDER BY code <~> ':q') q \gset
		SELECT id FROM long ORDER BY code <~> (SELECT random_code(4001)) LIMIT 10;
		SELECT count(*) AS near FROM short WHERE hamming_within(code, ':q', 31) \gset
		SELECT count(*) AS near_long FROM long WHERE hamming_within(code, ':l', 400) \gset
		SET LOCAL enable_indexscan = off;
		SET LOCAL enable_indexonlyscan = off;
		SET LOCAL enable_bitmapscan = off;
		SET LOCAL enable_seqscan = on;
		SELECT 1 / (count(*) = :by_index AND coalesce(md5(string_agg(d::text, ',' ORDER BY d)), 'none') = ':distances' AND count(*) FILTER (WHERE d <= 31) = :near)::int
			FROM (SELECT code <~> ':q' AS d FROM short) AS q;
		SELECT 1 / (count(*) = :near_long)::int FROM long WHERE hamming_within(code, ':l', 400);
		COMMIT;
	},
	build => q{
		CREATE INDEX another_:client_id ON short USING hamming (code);
		DROP INDEX another_:client_id;
	},
	vacuum => q{
		VACUUM short;
		VACUUM long;
	},
);

# Starts clients, each of which runs scripts at random for that many seconds.
sub start_load
{
	my ($node, $clients, $seconds, $seed, @names) = @_;
	my $directory = PostgreSQL::Test::Utils::tempdir();
	my @files;
	foreach my $name (@names)
	{
		append_to_file("$directory/$name.sql", join("\n", grep { /\S/ } split /\n/, $scripts{$name}) . "\n");
		push @files, '-f', "$directory/$name.sql";
	}
	my $output = '';
	my $run = IPC::Run::start(
		[ 'pgbench', '-n', '-c', $clients, '-T', $seconds, '--random-seed', $seed, '-h', $node->host, '-p', $node->port, @files, 'postgres' ],
		'<', \undef, '>&', \$output);
	return { run => $run, output => \$output };
}

# Waits for the clients; true if none had an error.
sub finish_load
{
	my ($load) = @_;
	my $good = $load->{run}->finish && ${ $load->{output} } !~ /ERROR|FATAL|PANIC|aborted/;
	diag(${ $load->{output} }) unless $good;
	return $good;
}

# Indexes are consistent, and give the answers that a sequential scan with a sort gives.
sub is_sound
{
	my ($node, $name) = @_;
	my $answer = $node->safe_psql('postgres', q{
		SELECT hamming_check(indexrelid) FROM pg_index i JOIN pg_class c ON c.oid = indexrelid JOIN pg_am a ON a.oid = relam
		WHERE amname = 'hamming' AND indisvalid;
		CREATE TEMPORARY TABLE questions AS SELECT i, random_code(64) AS short, random_code(4001) AS long FROM generate_series(1, 5) i;
		CREATE TEMPORARY TABLE answers (by_index bool, i int, distances text, ids text);
		SET enable_sort = off;
		SET enable_seqscan = off;
		INSERT INTO answers SELECT true, i, (SELECT string_agg(d::text, ',') FROM (SELECT code <~> q.short AS d FROM short ORDER BY code <~> q.short) s),
			(SELECT string_agg(id::text, ',') FROM (SELECT id FROM long WHERE hamming_within(code, q.long, 1940) ORDER BY id) s) FROM questions q;
		RESET ALL;
		SET enable_indexscan = off;
		SET enable_indexonlyscan = off;
		SET enable_bitmapscan = off;
		INSERT INTO answers SELECT false, i, (SELECT string_agg(d::text, ',' ORDER BY d) FROM (SELECT code <~> q.short AS d FROM short) s),
			(SELECT string_agg(id::text, ',' ORDER BY id) FROM long WHERE hamming_within(code, q.long, 1940)) FROM questions q;
		SELECT count(*) FROM answers a JOIN answers b ON a.i = b.i AND a.by_index AND NOT b.by_index
			AND a.distances IS NOT DISTINCT FROM b.distances AND a.ids IS NOT DISTINCT FROM b.ids;
	});
	$answer =~ s/\s//g;
	is($answer, '5', $name);
	return;
}

1;
