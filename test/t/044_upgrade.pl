# pg_upgrade keeps models, codes, attached columns and the files of indexes.  The old server is that of the
# variable oldinstall, as in the server's own tests; without it, the same server once more.
use strict;
use warnings;

use Cwd;
use FindBin;
use lib $FindBin::RealBin;
use Items;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# it refuses programs of two versions, which a package manager may leave behind that upgrades some of them
my ($server, $client) = map { `$_ --version` =~ /(\d.*)/ } 'postgres', 'pg_dump';
plan skip_all => "the server is $server, and pg_dump $client" if $server ne $client;

my $old = PostgreSQL::Test::Cluster->new('old', $ENV{oldinstall} ? (install_path => $ENV{oldinstall}) : ());
my $new = PostgreSQL::Test::Cluster->new('new');
# the same on both sides, whatever each version would take by itself
my @options = ('--locale', 'C', '--encoding', 'UTF8');
$old->init(extra => [ @options, '-k' ]);
$old->append_conf('postgresql.conf', $Items::settings);
$new->init(extra => [ @options, '-k' ]);
$new->append_conf('postgresql.conf', $Items::settings);
$old->start;
note('from ' . $old->safe_psql('postgres', 'SHOW server_version'));
$old->safe_psql('postgres', qq{
	CREATE EXTENSION unifdiag;
	$Items::functions
	CREATE TABLE items ($Items::columns);
	INSERT INTO items SELECT $Items::row FROM generate_series(1, 2000) i;
	CREATE TABLE photos (id int PRIMARY KEY, v real[]);
	INSERT INTO photos SELECT i, vector_of(i) FROM generate_series(1, 500) i;
	CREATE TABLE models AS SELECT sketcher_agg(v, 8 ORDER BY id) AS model FROM photos;
	SELECT sketcher_attach('photos', 'v', 'code', 8, auto_refresh => NULL);
	CREATE INDEX photos_code ON photos USING hamming (code);
	INSERT INTO photos SELECT i, vector_of(i) FROM generate_series(501, 600) i;
});
Items::create_indexes($old, 'postgres', 'items');
# with entries that VACUUM has moved, and some that came later
$old->safe_psql('postgres', 'DELETE FROM items WHERE id % 3 = 0');
$old->safe_psql('postgres', 'VACUUM items');
$old->safe_psql('postgres', "INSERT INTO items SELECT $Items::row FROM generate_series(2001, 2500) i");

my $digest = q{
	SELECT md5(string_agg(id || ' ' || code::text, ',' ORDER BY id)) FROM items
	UNION ALL SELECT md5(string_agg(id || ' ' || code::text, ',' ORDER BY id)) FROM photos
	UNION ALL SELECT md5(model::text) FROM models
	UNION ALL SELECT md5(published::text || learning::text) FROM photos_code_model
	UNION ALL SELECT string_agg(relname || pg_relation_size(oid), ',' ORDER BY relname) FROM pg_class WHERE relam IN (SELECT oid FROM pg_am WHERE amtype = 'i' AND amname NOT IN ('btree', 'hash', 'gist', 'gin', 'brin', 'spgist'))
};
my $before = $old->safe_psql('postgres', $digest);
my @distances = map { Items::distances($old, 'postgres', 'items', $_, $Items::by_index) } @Items::searches;
$old->stop;

chomp(my $bindir = `pg_config --bindir`);
# it leaves its logs where it is called
my $here = getcwd();
chdir PostgreSQL::Test::Utils::tempdir() or die;
command_ok([ 'pg_upgrade', `pg_upgrade --help` =~ /(--no-sync)/ ? $1 : (), '-d', $old->data_dir, '-D', $new->data_dir, '-b', $ENV{oldinstall} ? "$ENV{oldinstall}/bin" : $bindir, '-B', $bindir,
	'-s', $new->host, '-p', $old->port, '-P', $new->port ], 'pg_upgrade');
chdir $here;
$new->start;
note('to ' . $new->safe_psql('postgres', 'SHOW server_version'));
is($new->safe_psql('postgres', $digest), $before, 'codes, models and indexes are what they were');
Items::indexes_are_right($new, 'postgres', 'items', 'the new server');
is(Items::distances($new, 'postgres', 'items', $_, $Items::by_index), shift @distances, "$_->{kind}: the same distances") foreach @Items::searches;

# and all goes on
$new->safe_psql('postgres', 'INSERT INTO photos SELECT i, vector_of(i) FROM generate_series(601, 900) i');
$new->safe_psql('postgres', q{CALL sketcher_refresh('photos', 'code')});
is($new->safe_psql('postgres', q{SELECT count(*) FROM photos WHERE code IS DISTINCT FROM sketcher_hash('photos_code_model'::regclass, v)}), 0, 'an attached column lives on');
$new->safe_psql('postgres', 'DELETE FROM items WHERE id % 5 = 0');
$new->safe_psql('postgres', 'VACUUM items');
$new->safe_psql('postgres', "INSERT INTO items SELECT $Items::row FROM generate_series(2501, 3000) i");
Items::indexes_are_right($new, 'postgres', 'items', 'after changes');
$new->safe_psql('postgres', q{SELECT hamming_check('photos_code')});

# Somebody who is no superuser dumps a database, and restores it.
$new->safe_psql('postgres', 'CREATE ROLE keeper LOGIN');
$new->safe_psql('postgres', "CREATE DATABASE $_ OWNER keeper") foreach 'kept', 'restored';
my @keeper = ('-U', 'keeper', '-h', $new->host, '-p', $new->port);
$new->psql('kept', 'ALTER SCHEMA public OWNER TO keeper');
$new->psql('restored', 'ALTER SCHEMA public OWNER TO keeper');
sub as_keeper
{
	my ($database, $sql) = @_;
	return $new->safe_psql($database, $sql, extra_params => [ '-U', 'keeper' ]);
}
as_keeper('kept', qq{
	CREATE EXTENSION unifdiag;
	$Items::functions
	CREATE TABLE items ($Items::columns);
	INSERT INTO items SELECT $Items::row FROM generate_series(1, 500) i;
	CREATE TABLE photos (id int PRIMARY KEY, v real[]);
	INSERT INTO photos SELECT i, vector_of(i) FROM generate_series(1, 500) i;
	SELECT sketcher_attach('photos', 'v', 'code', 8, auto_refresh => NULL)});
Items::create_indexes($new, 'kept', 'items');
$new->safe_psql('kept', "ALTER INDEX items_$_->{kind} OWNER TO keeper") foreach @Items::searches;
my $file = PostgreSQL::Test::Utils::tempdir() . '/dump';
command_ok([ 'pg_dump', @keeper, '-Fc', '-f', $file, 'kept' ], 'dump by a user');
command_ok([ 'pg_restore', @keeper, '-e', '-d', 'restored', $file ], 'restored by that user');
my $kept = q{SELECT (SELECT md5(string_agg(id || ' ' || code::text, ',' ORDER BY id)) FROM items), md5(string_agg(id || ' ' || code::text, ',' ORDER BY id)), (SELECT md5(published::text) FROM photos_code_model) FROM photos};
is(as_keeper('restored', $kept), as_keeper('kept', $kept), 'with the same codes and models');
Items::indexes_are_right($new, 'restored', 'items', 'the restored database');
as_keeper('restored', q{INSERT INTO photos SELECT i, vector_of(i) FROM generate_series(501, 600) i});
as_keeper('restored', q{CALL sketcher_refresh('photos', 'code')});
is(as_keeper('restored', q{SELECT count(*) FROM photos WHERE code IS DISTINCT FROM sketcher_hash('photos_code_model'::regclass, v)}), 0, 'the attached column lives on there');

$new->stop;
unlike(slurp_file($new->logfile), qr/TRAP|PANIC/, 'nothing went wrong behind the scenes');
done_testing();
