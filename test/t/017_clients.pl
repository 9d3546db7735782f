# Vectors as the clients that people have pass them, without a cast: psql, psycopg 2 and 3, node-postgres, JDBC.
use strict;
use warnings;

use File::Basename qw(dirname);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $clients = dirname(__FILE__) . '/../clients';
my $node = PostgreSQL::Test::Cluster->new('clients');
# without a locale it would have no encoding, and psycopg give bytes
$node->init(extra => [ '--encoding=UTF8', '--no-locale' ]);
# JDBC has no sockets of Unix
$node->append_conf('postgresql.conf', "listen_addresses = '127.0.0.1'");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION unifdiag;
	CREATE TABLE items AS SELECT i AS id, ARRAY[sin(i), cos(i * i), sin(i * 0.7), cos(i * 1.3)]::real[] AS v FROM generate_series(1, 200) i;
	SELECT sketcher_attach('items', 'v', 'code', 4, auto_refresh => NULL);
});
my $code = $node->safe_psql('postgres', q{SELECT sketcher_hash(published, '{1,2,3,4}'::real[]) FROM items_code_model});
like($code, qr/^[01]{4}$/, 'there is a code');

# psql: literals, and parameters without a type
foreach my $vector ("'{1,2,3,4}'", "'[1,2,3,4]'", 'ARRAY[1,2,3,4]', 'ARRAY[1.0,2.0,3.0,4.0]', "'{1,2,3,4}'::double precision[]")
{
	is($node->safe_psql('postgres', "SELECT sketcher_hash('items_code_model', $vector)"), $code, "psql: $vector");
}
is($node->safe_psql('postgres', "PREPARE hash AS SELECT sketcher_hash('items_code_model', \$1); EXECUTE hash('[1,2,3,4]')"), $code, 'psql: PREPARE');
SKIP:
{
	skip 'psql has no \bind before 16', 1 if $node->safe_psql('postgres', 'SHOW server_version_num') < 160000;
	is($node->safe_psql('postgres', "SELECT sketcher_hash('items_code_model', \$1) \\bind '[1,2,3,4]' \\g"), $code, 'psql: \bind');
}

# runs a client, each of whose lines ends with a code
sub run_client
{
	my ($name, @command) = @_;
	my ($out, $error);

	local $ENV{PGHOST} = $node->host;
	local $ENV{PGPORT} = $node->port;
	local $ENV{PGDATABASE} = 'postgres';
	local $ENV{PGUSER} = $ENV{PGUSER} // getpwuid($<);
	my $ended_well = IPC::Run::run(\@command, '>', \$out, '2>', \$error);
	ok($ended_well, "$name runs") or diag($error);
	my @lines = split /\n/, $out;
	cmp_ok(scalar @lines, '>=', 4, "$name prints codes");
	foreach my $line (@lines)
	{
		is(($line =~ /: ([01]+)$/)[0], $code, $line);
	}
}

sub has
{
	my $ignored;

	return IPC::Run::run([@_], '>', \$ignored, '2>', \$ignored);
}

foreach my $module ('psycopg2', 'psycopg')
{
	SKIP:
	{
		skip "$module is not installed", 1 unless has('/usr/bin/python3', '-c', "import numpy, $module");
		run_client($module, '/usr/bin/python3', "$clients/${module}_vectors.py");
	}
}
SKIP:
{
	local $ENV{NODE_PATH} = $ENV{NODE_PATH} // '/usr/share/nodejs:/usr/lib/node_modules';
	skip 'node-postgres is not installed', 1 unless eval { has('node', '-e', "require('pg')") };
	run_client('node-postgres', 'node', "$clients/pg_vectors.js");
}
SKIP:
{
	my $driver = '/usr/share/java/postgresql.jar';
	skip 'JDBC, or a Java compiler, is not installed', 1 unless -e $driver && eval { has('javac', '-version') };
	my $url = sprintf('jdbc:postgresql://127.0.0.1:%d/postgres?user=%s', $node->port, getpwuid($<));
	run_client('JDBC', 'java', '-cp', $driver, "$clients/JdbcVectors.java", $url);
}

$node->stop;
done_testing();
