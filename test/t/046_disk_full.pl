# A disk that is full while an index is built or grows, or a column is refreshed: an error, nothing is wrong
# afterwards, and all goes on when there is room again.  The disk is a small tmpfs in a mount namespace of our own.
use strict;
use warnings;

# The test starts itself again where it may mount, and there as the user that it was: servers refuse to run as
# root.  That comes first, before the modules take standard output; not if the syntax is checked only.
BEGIN
{
	if (!$^C && !$ENV{UNIFDIAG_DISK})
	{
		require File::Temp;
		my $directory = File::Temp::tempdir(CLEANUP => 1);
		my $mount = 'mount -t tmpfs -o size=24m none "$UNIFDIAG_DISK"';
		local $ENV{UNIFDIAG_DISK} = $directory;
		if (system("unshare -Um --map-root-user sh -c '$mount && unshare -U --map-user=$> true' >/dev/null 2>&1") != 0)
		{
			print "1..0 # SKIP needs user namespaces in which to mount a small disk\n";
			exit 0;
		}
		exit(system('unshare', '-Um', '--map-root-user', 'sh', '-c', $mount . ' && exec unshare -U --map-user="$0" "$@"', $>,
			$^X, (map { "-I$_" } @INC), $0) >> 8);
	}
}

use FindBin;
use lib $FindBin::RealBin;
use Items;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $disk = $ENV{UNIFDIAG_DISK};
my $node = PostgreSQL::Test::Cluster->new('disk');
$node->init;
$node->append_conf('postgresql.conf', $Items::settings);
$node->append_conf('postgresql.conf', "autovacuum = off\nfsync = off\nshared_buffers = 16MB\n");
$node->start;
mkdir "$disk/space" or die;
$node->safe_psql('postgres', "CREATE TABLESPACE small LOCATION '$disk/space'");
$node->safe_psql('postgres', qq{
	CREATE EXTENSION unifdiag;
	$Items::functions
	SET default_tablespace = small;
	CREATE TABLE items ($Items::columns)});

# leaves this many kB free
sub fill
{
	my ($free) = @_;
	my $available = (split ' ', (split /\n/, `df -k --output=avail '$disk'`)[1])[0];
	my $size = $available - $free;
	system("head -c ${size}k /dev/zero > '$disk/filler'") == 0 or die;
	return;
}
sub clear
{
	unlink "$disk/filler";
	return;
}
sub is_refused
{
	my ($sql, $name) = @_;
	my ($status, $out, $error) = $node->psql('postgres', $sql);
	like($error, qr/No space left on device|Check free disk space/, $name);
	return;
}

# build: no room for an index at first, then for a part of it
$node->safe_psql('postgres', "INSERT INTO items SELECT $Items::row FROM generate_series(1, 20000) i; CHECKPOINT");
foreach my $search (@Items::searches)
{
	foreach my $free (0, 64, 200)
	{
		fill($free);
		is_refused("SET default_tablespace = small; CREATE INDEX items_$search->{kind} ON items $search->{index}", "$search->{kind}: not built with $free kB");
		clear();
	}
	$node->safe_psql('postgres', "SET default_tablespace = small; CREATE INDEX items_$search->{kind} ON items $search->{index}");
}
Items::indexes_are_right($node, 'postgres', 'items', 'built when there is room');

# insert: until it is full, some times
foreach my $free (16, 256, 700)
{
	$node->safe_psql('postgres', 'CHECKPOINT');
	fill($free);
	is_refused(qq{DO \$\$ BEGIN FOR n IN 1..200 LOOP INSERT INTO items SELECT $Items::row FROM generate_series(n * 1000, n * 1000 + 400) i; END LOOP; END \$\$}, "rows are refused with $free kB");
	Items::indexes_are_right($node, 'postgres', 'items', 'while it is full');
	clear();
	$node->safe_psql('postgres', "INSERT INTO items SELECT $Items::row FROM generate_series(1000001, 1000100) i");
	$node->safe_psql('postgres', 'VACUUM items');
	Items::indexes_are_right($node, 'postgres', 'items', 'when there is room again');
}
is($node->safe_psql('postgres', 'SELECT count(*) FROM items'), 20300, 'no row is lost, and none came in half');
$node->safe_psql('postgres', 'DROP TABLE items');

# refresh: stops, and the next one goes on
$node->safe_psql('postgres', q{
	SET default_tablespace = small;
	CREATE TABLE photos (id int, v real[], filler text DEFAULT repeat('x', 400));
	INSERT INTO photos SELECT i, vector_of(i) FROM generate_series(1, 4000) i;
	SELECT sketcher_attach('photos', 'v', 'code', 8, rotation => 'random', auto_refresh => NULL);
	CREATE INDEX photos_code ON photos USING hamming (code);
	UPDATE photos SET v = vector_of(id * 31 + 7);
	VACUUM photos;
	CHECKPOINT});
$node->safe_psql('postgres', q{INSERT INTO photos SELECT i, vector_of(i * 3 + 1) FROM generate_series(4001, 12000) i});
$node->safe_psql('postgres', 'CHECKPOINT');
fill(48);
is_refused(q{CALL sketcher_refresh('photos', 'code')}, 'a refresh without room fails');
my $broken = $node->safe_psql('postgres', q{SELECT count(*) FROM photos WHERE code IS NULL});
is($broken, 0, 'every row has a code meanwhile');
clear();
$node->safe_psql('postgres', q{CALL sketcher_refresh('photos', 'code')});
is($node->safe_psql('postgres', q{SELECT count(*) FROM photos WHERE code IS DISTINCT FROM sketcher_hash('photos_code_model'::regclass, v)}), 0, 'and the next one makes all codes right');
$node->safe_psql('postgres', q{SELECT hamming_check('photos_code')});

$node->stop;
unlike(slurp_file($node->logfile), qr/TRAP|PANIC/, 'nothing went wrong behind the scenes');
done_testing();
