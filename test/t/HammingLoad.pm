# A table with a hamming index under load, for the tests of crashes, replicas and concurrency.
package HammingLoad;
use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

# how often to kill, and how long to load: more in a soak
our $kills = $ENV{UNIFDIAG_KILLS} // 8;
our $seconds = $ENV{UNIFDIAG_SECONDS} // 15;

# Settings under which mistakes show: full checks of replayed pages, and VACUUM all the time.  Of the records of these
# indexes a build's are copies of whole pages, and all others generic ones, also those that log.c makes itself.
our $settings = q{
	wal_consistency_checking = 'generic'
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

# What clients run.  They pass over rows that others are changing: if two waited for each other, one would have an error.
our %scripts = (
	# with records of our own, and with generic ones
	insert => q{
		SELECT set_config('unifdiag.private_interfaces', (random() < 0.5)::text, false);
		INSERT INTO short (code) SELECT CASE WHEN random() < 0.95 THEN random_code(64) END FROM generate_series(1, 30);
		INSERT INTO long (code) VALUES (random_code(4001)), (NULL);
		INSERT INTO long (code) SELECT code FROM long WHERE code IS NOT NULL ORDER BY id DESC LIMIT 1;
	},
	update => q{
		UPDATE short SET code = random_code(64) WHERE id = ANY (ARRAY(SELECT id FROM short ORDER BY random() LIMIT 5 FOR UPDATE SKIP LOCKED));
		UPDATE long SET code = random_code(4001) WHERE id = ANY (ARRAY(SELECT id FROM long ORDER BY random() LIMIT 2 FOR UPDATE SKIP LOCKED));
	},
	delete => q{
		DELETE FROM short WHERE id = ANY (ARRAY(SELECT id FROM short ORDER BY random() LIMIT 20 FOR UPDATE SKIP LOCKED));
		DELETE FROM long WHERE id = ANY (ARRAY(SELECT id FROM long WHERE id < (SELECT max(id) - 4000 FROM long) FOR UPDATE SKIP LOCKED));
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
	# rows of a table of joins come, change, also without a new entry in the index, and go
	churn => q{
		INSERT INTO joined (code) SELECT padded_code() FROM generate_series(1, 30);
		UPDATE joined SET note = note + 1 WHERE id = ANY (ARRAY(SELECT id FROM joined ORDER BY random() LIMIT 10 FOR UPDATE SKIP LOCKED));
		UPDATE joined SET code = padded_code() WHERE id = ANY (ARRAY(SELECT id FROM joined ORDER BY random() LIMIT 5 FOR UPDATE SKIP LOCKED));
		DELETE FROM joined WHERE id = ANY (ARRAY(SELECT id FROM joined ORDER BY random() LIMIT greatest((SELECT count(*) FROM joined) - 300, 0) FOR UPDATE SKIP LOCKED));
	},
	# by the index and without it, in one snapshot: the same pairs, clusters of these, the same distances, or an error
	join => q{
		SELECT padded_code() AS q \gset
		BEGIN ISOLATION LEVEL REPEATABLE READ;
		SELECT count(*) AS pairs, coalesce(md5(string_agg(p::text, ' ' ORDER BY a, b)), 'none') AS digest FROM hamming_pairs('joined_code', 2) p \gset
		SELECT count(*) AS members FROM hamming_clusters('joined_code', 2) \gset
		SELECT coalesce(string_agg(distance::text, ' ' ORDER BY distance), 'none') AS nearest FROM hamming_nearest('joined_code', ARRAY[':q'::bithash], 50) \gset
		SELECT 1 / (count(*) = :pairs AND coalesce(md5(string_agg(p::text, ' ' ORDER BY a, b)), 'none') = ':digest')::int
			FROM (SELECT x.ctid AS a, y.ctid AS b, hamming_distance(x.code, y.code) AS distance FROM joined x JOIN joined y ON x.ctid < y.ctid AND hamming_distance(x.code, y.code) <= 2) p;
		SELECT 1 / (count(*) = :members)::int FROM (SELECT a FROM hamming_pairs('joined_code', 2) UNION SELECT b FROM hamming_pairs('joined_code', 2)) m;
		SELECT 1 / (count(*) = 0)::int FROM hamming_pairs('joined_code', 2) p JOIN hamming_clusters('joined_code', 2) x ON x.member = p.a JOIN hamming_clusters('joined_code', 2) y ON y.member = p.b WHERE x.cluster <> y.cluster;
		SELECT 1 / (coalesce(string_agg(d::text, ' ' ORDER BY d), 'none') = ':nearest')::int FROM (SELECT hamming_distance(code, ':q') AS d FROM joined ORDER BY d LIMIT 50) n;
		COMMIT;
	},
	vacuum_joined => q{
		VACUUM (INDEX_CLEANUP on) joined;
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

# All at once, as when the machine goes down: nobody has a chance to write anything more.
sub kill_server
{
	my ($node) = @_;
	my $postmaster = (split /\n/, slurp_file($node->data_dir . '/postmaster.pid'))[0];
	my @children;
	# first of all, it shall have no more children than we see
	kill 'STOP', $postmaster;
	usleep(1_000) until slurp_file("/proc/$postmaster/stat") =~ /\) T /;
	foreach my $stat (glob '/proc/[0-9]*/stat')
	{
		# number, name in parentheses, state, parent
		my $content = eval { slurp_file($stat) } // '';
		push @children, $1 if $content =~ /^(\d+) .*\) \S $postmaster /s;
	}
	kill 'KILL', $postmaster, @children;
	usleep(10_000) while kill 0, $postmaster;
	# the orphans' shared memory must be gone before the next start
	foreach my $child (@children)
	{
		usleep(10_000) while kill 0, $child;
	}
	unlink $node->data_dir . '/postmaster.pid';
	$node->{_pid} = undef;
	return;
}

# Starts the server and kills it before it has recovered.
sub kill_during_recovery
{
	my ($node, $delay) = @_;
	my $log = $node->logfile;
	my $offset = -s $log;
	system("pg_ctl -W -s -D '" . $node->data_dir . "' -l '$log' start");
	usleep(1_000) until slurp_file($log, $offset) =~ /redo starts|ready to accept/;
	usleep($delay);
	my $caught = slurp_file($log, $offset) !~ /redo done|ready to accept/;
	kill_server($node);
	return $caught;
}

1;
