# pgbouncer with transaction pooling: what a connection has cached is of no harm to whoever gets it next.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use IPC::Run;
use Items;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my ($pgbouncer) = grep { -x } map { "$_/pgbouncer" } split(/:/, $ENV{PATH}), '/usr/sbin', '/usr/local/sbin';
plan skip_all => 'pgbouncer is not installed' unless $pgbouncer;

my $node = PostgreSQL::Test::Cluster->new('pooled');
$node->init;
$node->append_conf('postgresql.conf', $Items::settings);
$node->append_conf('postgresql.conf', "max_connections = 40\n");
$node->start;
$node->safe_psql('postgres', qq{
	CREATE EXTENSION unifdiag;
	$Items::functions
	CREATE TABLE items ($Items::columns);
	INSERT INTO items SELECT $Items::row FROM generate_series(1, 2000) i});
Items::create_indexes($node, 'postgres', 'items');

# a pool of few connections for many clients
my $directory = PostgreSQL::Test::Utils::tempdir_short();
my ($host, $port, $user) = ($node->host, PostgreSQL::Test::Cluster::get_free_port(), $node->safe_psql('postgres', 'SELECT current_user'));
append_to_file("$directory/users.txt", qq{"$user" ""\n});
append_to_file("$directory/pgbouncer.ini", join("\n",
	'[databases]', "postgres = host=$host port=" . $node->port,
	'[pgbouncer]', 'listen_addr =', "unix_socket_dir = $directory", "listen_port = $port", 'auth_type = trust', "auth_file = $directory/users.txt",
	"logfile = $directory/log", "pidfile = $directory/pid", 'pool_mode = transaction', 'default_pool_size = 3', 'max_client_conn = 100', 'ignore_startup_parameters = extra_float_digits,options', ''));
my $pooler = IPC::Run::start([ $pgbouncer, '-q', "$directory/pgbouncer.ini" ], '<', '/dev/null', '>&', '/dev/null');
END
{
	# also if the test dies
	my $status = $?;
	$pooler->kill_kill if $pooler;
	$? = $status;
}

# clients of newer servers try a protocol that an older pgbouncer does not know
$ENV{PGMAXPROTOCOLVERSION} = '3.0';
my $pool = "host=$directory port=$port user=$user dbname=postgres";

sub pooled
{
	my ($sql) = @_;
	my ($out, $error) = ('', '');
	my $good = IPC::Run::run([ 'psql', '-X', '-A', '-t', '-q', '-v', 'ON_ERROR_STOP=1', '-d', $pool ], '<', \$sql, '>', \$out, '2>', \$error);
	chomp $out;
	return $good ? $out : $error;
}
# a psql that cannot connect does not read what it is given, and that would end the test
my $tries = 0;
sleep 1 until -S "$directory/.s.PGSQL.$port" || ++$tries > 30;
is(pooled('SELECT 1'), '1', 'pgbouncer answers');

# attach, insert and refresh, each by whichever connection is free
pooled(q{CREATE TABLE photos (id int PRIMARY KEY, v real[])});
pooled(q{INSERT INTO photos SELECT i, vector_of(i) FROM generate_series(1, 500) i});
is(pooled(q{SELECT sketcher_attach('photos', 'v', 'code', 8, auto_refresh => NULL)}), 'photos_code_model', 'attach');
pooled(q{CREATE INDEX photos_code ON photos USING hamming (code)});

append_to_file("$directory/insert.sql", <<'END');
\set id random(1000, 100000000)
INSERT INTO photos VALUES (:id, vector_of(:id)) ON CONFLICT DO NOTHING;
END
append_to_file("$directory/search.sql", <<'END');
\set id random(1, 500)
BEGIN;
SELECT id FROM photos ORDER BY code <~> sketcher_hash('photos_code_model'::regclass, vector_of(:id)) LIMIT 5;
END;
END
foreach my $search (@Items::searches)
{
	append_to_file("$directory/items.sql", "SELECT id FROM items ORDER BY $search->{order} LIMIT 10;\n");
}
my $output = '';
my $load = IPC::Run::start([ 'pgbench', '-n', '-c', 20, '-T', 8, '--random-seed', 20180415,
	(map { ('-f', "$directory/$_.sql") } 'insert', 'search', 'items'), $pool ], '<', \undef, '>&', \$output);
# CALL commits as it goes: allowed, for it is one statement of its own
my $refreshes = 0;
foreach (1 .. 5)
{
	sleep 1;
	$refreshes++ if pooled(q{CALL sketcher_refresh('photos', 'code')}) eq '';
}
ok($load->finish && $output !~ /ERROR|FATAL|aborted/, 'twenty clients insert and search') or diag($output);
is($refreshes, 5, 'and the column is refreshed meanwhile');
pooled(q{CALL sketcher_refresh('photos', 'code')});
is(pooled(q{SELECT count(*) FROM photos WHERE code IS DISTINCT FROM sketcher_hash('photos_code_model'::regclass, v)}), '0', 'all codes are right');
is(pooled(q{SELECT count(*) > 500 FROM photos}), 't', 'rows came');
Items::indexes_are_right($node, 'postgres', 'items', 'after that');
$node->safe_psql('postgres', q{SELECT hamming_check('photos_code')});

$node->stop;
unlike(slurp_file($node->logfile), qr/TRAP|PANIC/, 'nothing went wrong behind the scenes');
done_testing();
