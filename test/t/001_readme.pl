# Every SQL block of README.md and of the pages in doc runs, in order, in a fresh database for each page; where a
# text block follows a SQL block, it is what psql prints.  A Python or JavaScript block, which begins with the name
# of its driver, returns five rows, where the driver is installed.  Of shell commands, those that build, install and
# remove run, with a directory of the test in place of the system's; of every other "make" the Makefile has the target.
# Links lead somewhere, here and where the pages are installed.
use strict;
use warnings;

use File::Basename qw(basename dirname);
use File::Find qw(find);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('readme');
$node->init;
$node->start;

# without the lines that differ from run to run
sub comparable
{
	my ($output) = @_;
	$output =~ s/^Time: .*\n//mg;
	$output =~ s/[ \t]+$//mg;
	$output =~ s/\s+\z//;
	return $output;
}

sub line_of
{
	my ($page, $offset) = @_;
	return 1 + (substr($page, 0, $offset) =~ tr/\n//);
}

sub check_statements
{
	my ($file, $page, $database) = @_;
	my $blocks = 0;
	while ($page =~ /^```sql\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?/msg)
	{
		my ($sql, $expected) = ($1, $2);
		my $where = "$file line " . line_of($page, $-[0]);
		my ($stdout, $stderr);
		my $result = IPC::Run::run(
			[ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr($database) ],
			'<', \$sql, '>', \$stdout, '2>', \$stderr);
		ok($result, "$where runs") or diag($stderr);
		is(comparable($stdout), comparable($expected), "$where prints what it says")
		  if defined $expected;
		$blocks++;
	}
	return $blocks;
}

# what a program does before the block, for each driver; the server is found by PGHOST and its fellows
my $vector = '[0.01 * i for i in range(384)]';
my %programs = (
	'psycopg' => "import psycopg
connection, vector = psycopg.connect(''), $vector
BLOCK
assert len(rows) == 5",
	'SQLAlchemy' => "from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session
session, vector = Session(create_engine('postgresql://')), $vector
BLOCK
assert len(rows) == 5",
	'Django' => "import django, os
from django.conf import settings
database = dict(ENGINE='django.db.backends.postgresql', NAME=os.environ['PGDATABASE'], HOST=os.environ['PGHOST'], PORT=os.environ['PGPORT'])
settings.configure(DATABASES=dict(default=database))
django.setup()
from django.db import models
class Document(models.Model):
    title = models.TextField()
    class Meta:
        app_label, db_table = 'documents', 'documents'
vector = $vector
BLOCK
assert len(rows) == 5",
	'node-postgres' => "const { Client } = require('pg')
async function main() {
const client = new Client(), vector = Array.from({ length: 384 }, (_, i) => 0.01 * i)
await client.connect()
BLOCK
if (rows.length != 5) throw new Error(rows.length + ' rows')
await client.end()
}
main().catch(error => { console.error(error); process.exit(1) })");
my %modules = ('psycopg' => 'psycopg', 'SQLAlchemy' => 'sqlalchemy, psycopg2', 'Django' => 'django, psycopg2', 'node-postgres' => 'pg');

sub run_program
{
	my ($language, $program) = @_;
	# Debian's Python and node find Debian's modules
	my @interpreter = $language eq 'js' ? ('/usr/bin/node', '-') : ('/usr/bin/python3', '-');
	my ($stdout, $stderr) = ('', '');
	return (0, 'no interpreter') unless -x $interpreter[0];
	local %ENV = (%ENV, NODE_PATH => join(':', $ENV{NODE_PATH} // (), '/usr/share/nodejs'));
	my $result = IPC::Run::run(\@interpreter, '<', \$program, '>', \$stdout, '2>', \$stderr);
	return ($result, $stdout . $stderr);
}

sub check_programs
{
	my ($file, $page, $database) = @_;
	local %ENV = (%ENV, PGHOST => $node->host, PGPORT => $node->port, PGDATABASE => $database, PGUSER => $node->safe_psql('postgres', 'SELECT current_user'));
	while ($page =~ /^```(python|js)\n(?:#|\/\/) (\S+)\n(.*?)^```\n/msg)
	{
		my ($language, $driver, $block) = ($1, $2, $3);
		my $where = "$file line " . line_of($page, $-[0]);
		my $program = $programs{$driver} or die "$where: unknown driver $driver";
		my $import = $language eq 'js' ? "require('$modules{$driver}')" : "import $modules{$driver}";
	  SKIP:
		{
			skip "$driver is not installed", 1 unless (run_program($language, $import))[0];
			my ($result, $output) = run_program($language, $program =~ s/BLOCK/$block/r);
			ok($result, "$where returns rows by $driver") or diag($output);
		}
	}
}

# what the commands install, and remove again
my $destination = PostgreSQL::Test::Utils::tempdir();

sub installed_files
{
	my %files;
	find(sub { $files{$_} = 1 if -f }, $destination);
	return \%files;
}

sub check_make
{
	my ($where, $target) = @_;
	# a package is tested by sources that nobody has built
	my $runs = $target =~ /^(?:all|install|uninstall)$/ && -e 'unifdiag.so';
	my @command = ('make', $runs ? () : '-n', $target, "DESTDIR=$destination", 'with_llvm=no');
	local %ENV = (%ENV, MAKEFLAGS => '');
	my $log = '';
	ok(IPC::Run::run(\@command, '>', \$log, '2>&1'), "$where: make $target" . ($runs ? '' : ' is known')) or diag($log);
	my @wanted = ('unifdiag.control', 'unifdiag_pgvector.control', 'unifdiag.so', map { basename($_) } glob('sql/*--*.sql README.md doc/*.md'));
	my $there = installed_files();
	is(join(' ', grep { !$there->{$_} } @wanted), '', "$where: all is installed") if $runs && $target eq 'install';
	is(join(' ', sort keys %$there), '', "$where: nothing is left") if $runs && $target eq 'uninstall';
}

# in shell blocks, and in the text
sub check_targets
{
	my ($file, $page) = @_;
	while ($page =~ /(?:^|`)(?:sudo )?make(?: ([a-z-]+))?(?:`|$)/mg)
	{
		check_make("$file line " . line_of($page, $-[0]), $1 // 'all');
	}
}

# whether a page has a heading to which a link's anchor leads
sub has_heading
{
	my ($page, $anchor) = @_;
	return scalar grep { lc(s/[^\w -]//gr) =~ tr/ /-/r eq $anchor } $page =~ /^#+ (.*)/mg;
}

sub check_links
{
	my ($file, $page) = @_;
	my $folder = dirname($file);
	while ($page =~ /\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)/g)
	{
		my ($path, $anchor) = ($1 eq '' ? $file : "$folder/$1", $2);
		ok(-e $path, "$file: $path is there");
		ok(has_heading(slurp_file($path), $anchor), "$file: $path has a heading $anchor") if defined $anchor;
	}
}

my %blocks;
foreach my $file ('README.md', glob('doc/*.md'))
{
	my $page = slurp_file($file);
	my ($database) = $file =~ /([^\/]+)\.md$/;
	$node->safe_psql('postgres', "CREATE DATABASE \"$database\"");
	$node->safe_psql($database, 'CREATE EXTENSION unifdiag') if $page !~ /^CREATE EXTENSION unifdiag;/m;
	$blocks{$file} = check_statements($file, $page, $database);
	check_programs($file, $page, $database);
	check_targets($file, $page);
	check_links($file, $page);
}
check_links($_, slurp_file($_)) foreach glob('src/README.md src/*/README.md');
# a fence that is not recognised would leave a page unchecked
my %least = ('README.md' => 9, 'doc/beyond-one-machine.md' => 1, 'doc/reference.md' => 14);
foreach my $file (sort keys %least)
{
	cmp_ok($blocks{$file}, '>=', $least{$file}, "$file: $blocks{$file} SQL blocks");
}

$node->stop;
done_testing();
