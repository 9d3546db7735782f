# doc/reference.md names every object of the extension that users see, with its arguments, and nothing else.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $page = slurp_file('doc/reference.md');
my $node = PostgreSQL::Test::Cluster->new('reference');
$node->init;
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION unifdiag');

sub rows_of
{
	my ($query) = @_;
	return map { [ split /\t/, $_, -1 ] } split /\n/, $node->safe_psql('postgres', $query, extra_params => [ '-F', "\t" ]);
}

my $members = "pg_depend d WHERE d.deptype = 'e' AND d.refclassid = 'pg_extension'::regclass
	AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'unifdiag')";

# what is written: code in backticks that is a call; the arguments of each
my %written;
while ($page =~ /^\| (.*?) \|/mg)
{
	my $cell = $1;
	while ($cell =~ /`(?:CALL )?(\w+)\(([^`]*)\)`/g)
	{
		my ($name, $list) = ($1, $2);
		# a type with its length looks like a call
		next if $list eq 'n';
		my @arguments = map { s/ = .*//r } split /, /, $list;
		push @{ $written{$name} }, \@arguments;
	}
}

# What there is: functions that do not stand behind a type, an operator, a cast, an aggregate, an index method or
# another function.
my %there;
push @{ $there{ $_->[0] } }, { types => $_->[1], names => [ split /,/, $_->[2] ], count => $_->[3] }
  foreach rows_of(
	"SELECT p.proname, pg_get_function_identity_arguments(p.oid),
		array_to_string((coalesce(p.proargnames, '{}'))[1:p.pronargs], ','), p.pronargs
	FROM pg_proc p WHERE p.oid IN (SELECT d.objid FROM $members AND d.classid = 'pg_proc'::regclass)
		AND p.prorettype NOT IN ('index_am_handler'::regtype, 'internal'::regtype)
		AND NOT EXISTS (SELECT FROM pg_type t WHERE p.oid IN
			(t.typinput, t.typoutput, t.typreceive, t.typsend, t.typmodin, t.typmodout))
		AND NOT EXISTS (SELECT FROM pg_cast c WHERE c.castfunc = p.oid)
		AND NOT EXISTS (SELECT FROM pg_amproc a WHERE a.amproc = p.oid)
		AND NOT EXISTS (SELECT FROM pg_operator o WHERE o.oprcode = p.oid AND p.proargnames IS NULL)
		AND NOT EXISTS (SELECT FROM pg_aggregate a
			WHERE p.oid IN (a.aggtransfn, a.aggfinalfn, a.aggcombinefn, a.aggmtransfn, a.aggminvtransfn))");
cmp_ok(scalar(keys %there), '>', 20, 'the extension has functions');

# "…" stands for arguments that a table of options lists
sub fits
{
	my ($arguments, $function) = @_;
	my @wanted = @$arguments;
	my $open = @wanted && $wanted[-1] eq '…';
	pop @wanted if $open;
	return 0 if $open ? @wanted > $function->{count} : @wanted != $function->{count};
	my @names = @{ $function->{names} };
	foreach my $i (0 .. $#wanted)
	{
		return 0 if @names && $names[$i] ne $wanted[$i];
	}
	if ($open)
	{
		foreach my $option (@names[ scalar(@wanted) .. $#names ])
		{
			return 0 unless $page =~ /^\| `"?\Q$option\E"?` \|/m;
		}
	}
	return 1;
}

foreach my $name (sort keys %there)
{
	foreach my $function (@{ $there{$name} })
	{
		ok((grep { fits($_, $function) } @{ $written{$name} }), "$name($function->{types}) is in the reference");
	}
}
my %any = map { $_->[0] => 1 }
  rows_of("SELECT proname FROM pg_proc WHERE oid IN (SELECT d.objid FROM $members AND d.classid = 'pg_proc'::regclass)");
foreach my $name (sort keys %written)
{
	ok($any{$name}, "$name of the reference is there");
	foreach my $arguments (@{ $written{$name} })
	{
		next unless $there{$name};
		ok((grep { fits($arguments, $_) } @{ $there{$name} }), "$name(@$arguments) is what it takes");
	}
}

# the columns that they return: in their row, or in a table of options
foreach my $row (rows_of(
	"SELECT p.proname, a.name FROM pg_proc p, unnest(p.proargnames, p.proargmodes) a(name, mode)
	WHERE p.oid IN (SELECT d.objid FROM $members AND d.classid = 'pg_proc'::regclass) AND a.mode IN ('o', 't')"))
{
	my ($name, $column) = @$row;
	ok($page =~ /^\| `\Q$name\E\(.*`\Q$column\E[` ]/m || $page =~ /^\| `\Q$column\E` \|/m, "the column $column of $name is in the reference");
}

# settings, with their defaults
my %settings = $page =~ /^\| `(unifdiag\.\w+)` \| `?([\w.]+)`? \|/mg;
$node->append_conf('postgresql.conf', "session_preload_libraries = 'unifdiag'");
$node->reload;
$node->poll_query_until('postgres', "SELECT count(*) > 0 FROM pg_settings WHERE name LIKE 'unifdiag.%'");
foreach my $row (rows_of("SELECT name FROM pg_settings WHERE name LIKE 'unifdiag.%'"))
{
	ok(exists $settings{ $row->[0] }, "the setting $row->[0] is in the reference");
}
foreach my $name (sort keys %settings)
{
	is($node->safe_psql('postgres', "SELECT current_setting('$name')"), $settings{$name}, "the default of $name");
}

# types, operators, operator classes, index methods
foreach my $row (rows_of(
	"SELECT t.typname FROM pg_type t WHERE t.typelem = 0 AND t.oid IN (SELECT d.objid FROM $members AND d.classid = 'pg_type'::regclass)
	UNION SELECT o.opcname FROM pg_opclass o WHERE o.oid IN (SELECT d.objid FROM $members AND d.classid = 'pg_opclass'::regclass)"))
{
	ok($page =~ /`\Q$row->[0]\E`/, "$row->[0] is in the reference");
}
foreach my $row (rows_of(
	"SELECT amname FROM pg_am WHERE oid IN (SELECT d.objid FROM $members AND d.classid = 'pg_am'::regclass)"))
{
	ok($page =~ /`CREATE INDEX … USING \Q$row->[0]\E \(/, "$row->[0] is in the reference");
}
foreach my $row (rows_of(
	"SELECT o.oprname, format_type(o.oprleft, NULL), format_type(o.oprright, NULL) FROM pg_operator o
	WHERE o.oid IN (SELECT d.objid FROM $members AND d.classid = 'pg_operator'::regclass)
		AND 'anynonarray'::regtype NOT IN (o.oprleft, o.oprright)"))
{
	# a table's cell writes a bar with a backslash before it
	my $operator = ($row->[1] eq '-' ? '' : "$row->[1] ") . "$row->[0] $row->[2]" =~ s/\|/\\|/gr;
	ok($page =~ /`\Q$operator\E`/, "the operator $row->[0] of $row->[1] and $row->[2] is in the reference");
}

# casts
foreach my $row (rows_of(
	"SELECT format_type(c.castsource, NULL), format_type(c.casttarget, NULL) FROM pg_cast c
	WHERE c.castsource <> c.casttarget AND c.oid IN (SELECT d.objid FROM $members AND d.classid = 'pg_cast'::regclass)"))
{
	my ($source, $target) = @$row;
	ok($page =~ /^\| [^|]*`\Q$source\E`[^|]* \| [^|]*`\Q$target\E`[^|]* \|/m, "the cast from $source to $target is in the reference");
}

$node->stop;
done_testing();
