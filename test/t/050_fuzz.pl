# Garbage, seeded: every function with every kind of value, the input and receive functions with changed
# bytes, stored models with changed bytes, indexes with changed pages.  All of it may be refused; nothing may crash, hang, or end in an error
# that "cannot happen".  UNIFDIAG_FUZZ is how many times as much as usual to try.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use IPC::Run;
use Checksum;
use Items;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $times = $ENV{UNIFDIAG_FUZZ} // 1;
my $seed = $ENV{UNIFDIAG_SEED} // 20180415;
srand($seed);
note("seed $seed, $times times");

my $node = PostgreSQL::Test::Cluster->new('fuzz');
# without checksums, which would find damaged pages first
$node->init(extra => [ `initdb --help` =~ /(--no-data-checksums)/ ? $1 : () ]);
$node->append_conf('postgresql.conf', $Items::settings);
$node->append_conf('postgresql.conf', "autovacuum = off\nrestart_after_crash = off\nlog_min_messages = panic\nmax_connections = 20\n");
$node->start;
$node->safe_psql('postgres', qq{
	CREATE EXTENSION unifdiag;
	$Items::functions
	CREATE TABLE items ($Items::columns);
	INSERT INTO items SELECT $Items::row FROM generate_series(1, 300) i;
	CREATE INDEX items_id ON items (id);
	CREATE VIEW items_view AS SELECT * FROM items;
	CREATE SEQUENCE numbers;
	CREATE TABLE parted ($Items::columns) PARTITION BY HASH (id);
	CREATE TABLE empty ($Items::columns);
	CREATE TABLE photos (id int, v real[]);
	INSERT INTO photos SELECT i, vector_of(i) FROM generate_series(1, 100) i;
	SELECT sketcher_attach('photos', 'v', 'code', 8, auto_refresh => NULL);
	CREATE TABLE models AS SELECT 1 AS id, sketcher_agg(v, 8) AS model FROM items UNION ALL SELECT 2, sketcher_new(16, 8)
		UNION ALL SELECT 3, sketcher_agg(v, 10) FROM items WHERE id <= 3 UNION ALL SELECT 4, sketcher_new(960, 64, 'hadamard', 'none')});
Items::create_indexes($node, 'postgres', $_) foreach 'items', 'empty', 'parted';

# Runs the statements in a session of their own; the server must be there afterwards, and no error be
# one that cannot happen, nor one of patience.
sub survives
{
	my ($name, @statements) = @_;
	my ($out, $error) = ('', '');
	my $sql = join(";\n", "SET statement_timeout = '60s'", @statements, "SELECT 'alive'") . ";\n";
	IPC::Run::run([ 'psql', '-X', '-A', '-t', '-q', '-v', 'VERBOSITY=verbose', '-f', '-', '-d', $node->connstr('postgres') ], '<', \$sql, '>', \$out, '2>', \$error);
	# of numbers that name no relation, or no page of one, the server itself speaks so
	my @bad = grep { !/could not open (relation with OID|file)/ } $error =~ /^(.*(?:XX000|57014|server closed|could not connect).*(?:\n.*)?)/mg;
	if (@bad)
	{
		diag(join("\n", @bad));
		# the statement, by psql's line number
		diag((split /\n/, $sql)[ $1 - 1 ]) if $bad[0] =~ /^psql:<stdin>:(\d+)/;
	}
	ok(!@bad && $out =~ /^alive\n\z/m, $name);
	return;
}

sub one_of
{
	return $_[ int rand @_ ];
}

my $vector = join ',', 1 .. 16;
my @relations = map { "'$_'::regclass" } qw(items items_view items_id items_hamming empty_hamming parted parted_hamming numbers photos photos_code_model pg_class pg_attribute_relid_attnam_index models);
my %values = (
	boolean => [qw(true false)],
	integer => [qw(0 1 -1 8 16 64 100 2147483647 -2147483648)],
	bigint => [qw(0 1 -1 8 9223372036854775807 -9223372036854775808)],
	oid => [qw(0 1 4294967295)],
	real => [qw(0 1 -1 'NaN' 'Infinity' 1e38)],
	'double precision' => [qw(0 0.05 1 -1 1e-300 1e308 'NaN' '-Infinity')],
	text => [ q{''}, q{'opast'}, q{'osh'}, q{'lsh'}, q{'unifdiag'}, q{'itq'}, q{'none'}, q{repeat('x', 100000)}, q{E'\\u0001\\n%s'} ],
	name => [ q{''}, q{'v'}, q{'code'}, q{'id'}, q{'no such'}, q{'ctid'} ],
	cstring => [ q{''}, q{'01'}, q{'xFF'}, q{'garbage'} ],
	bytea => [ q{''}, q{'\\x00'}, q{'\\xdeadbeef'}, q{decode(repeat('ab', 8001), 'hex')} ],
	bit => [ q{B''}, q{B'1'}, q{B'01010101'}, q{repeat('01', 40000)} ],
	'bit varying' => [ q{B''}, q{B'1'}, q{B'01010101'}, q{repeat('01', 40000)} ],
	bithash => [ q{'0'}, q{'01010101'}, q{'x0123456789abcdef'}, q{repeat('1', 64000)::bithash}, q{'xyz'} ],
	'real[]' => [ q{'{}'}, "'{$vector}'", q{'{1,2}'}, q{'{NULL}'}, q{'{NaN,1}'}, q{'{Infinity}'}, q{'{{1,2},{3,4}}'}, q{'[5:6]={1,2}'}, "'{3e38,-3e38,$vector}'", q{array_fill(0::real, ARRAY[16])}, q{array_fill(1::real, ARRAY[20000])} ],
	'double precision[]' => [ q{'{}'}, "'{$vector}'", q{'{1e308,1e-308}'}, q{'{NULL,1}'}, q{'{NaN}'}, q{'{{1},{2}}'}, q{array_fill(1e300::float8, ARRAY[16])} ],
	sketcher => [ (map { "(SELECT model FROM models WHERE id = $_)" } 1 .. 4), q{'garbage'}, q{''} ],
	hamming_ball => [ q{hamming_ball('0101', 2)}, q{hamming_ball('x0123456789abcdef', 64)}, q{'x'} ],
	regclass => [ @relations, '0', '4294967295', '1' ],
	'cstring[]' => [ q{'{}'}, q{'{8}'}, q{'{a}'}, q{'{8,9}'}, q{'{NULL}'}, q{'{99999999999}'} ],
	'bithash[]' => [ q{'{}'}, q{'{0101}'}, q{'{NULL,x0123456789abcdef}'}, q{'{{01},{10}}'} ],
	anynonarray => [ '1', q{'x'::text}, q{now()} ],
	'"any"' => [ '1', q{'{1,2}'::real[]}, q{'x'::text} ],
);

sub argument
{
	my ($type) = @_;
	# now and then a value of another type
	$type = one_of(sort keys %values) if rand() < 0.1;
	(my $plain = $type) =~ s/^(?:public|pg_catalog)\.//;
	my $known = $values{$plain};
	my $pseudo = $plain =~ /^any|^"any"|^cstring/;
	my $value = rand() < 0.12 || !$known ? ($pseudo && $plain ne 'cstring' && $plain ne 'cstring[]' ? 'NULL::int' : 'NULL') : one_of(@$known);
	return $pseudo && $plain !~ /^cstring/ ? $value : "($value)::$type";
}

# Every function that can be called from SQL at all.
my @functions = map { [ split /\|/, $_, -1 ] } split /\n/, $node->safe_psql('postgres', q{
	SELECT quote_ident(proname), prokind, prorettype::regtype, array_to_string(proargtypes::regtype[], ';')
	FROM pg_proc p JOIN pg_depend d ON d.objid = p.oid AND d.classid = 'pg_proc'::regclass AND d.deptype = 'e'
	JOIN pg_extension e ON d.refobjid = e.oid AND extname = 'unifdiag'
	WHERE NOT 'internal'::regtype = ANY (proargtypes) AND prorettype <> 'internal'::regtype ORDER BY p.oid::regprocedure::text});
cmp_ok(scalar @functions, '>', 50, 'there are functions');
foreach my $function (@functions)
{
	my ($name, $kind, $result, $types) = @$function;
	my @statements;
	foreach (1 .. 12 * $times)
	{
		my $call = "$name(" . join(', ', map { argument($_) } split /;/, $types) . ')';
		if ($kind eq 'p')
		{
			push @statements, "CALL $call";
		}
		elsif ($kind eq 'a')
		{
			# over some rows, each with other values; in groups, as a window, or of no rows
			my $more = "$name(" . join(', ', map { argument($_) } split /;/, $types) . ')';
			push @statements, one_of("SELECT $call FROM generate_series(1, 3)", "SELECT $call, $more FROM generate_series(1, 3) i GROUP BY i",
				"SELECT $call OVER (ORDER BY i) FROM generate_series(1, 3) i", "SELECT $call FROM generate_series(1, 0)");
		}
		else
		{
			push @statements, 'BEGIN', "SELECT $call", 'ROLLBACK';
		}
	}
	survives("$name($types)", @statements);
}

# Text and binary forms with changed bytes.
my %samples = (
	bithash => q{SELECT encode(bithash_send(value), 'hex'), value FROM (SELECT code_of(i) AS value FROM generate_series(1, 3) i UNION ALL SELECT '1') s},
	sketcher => q{SELECT encode(sketcher_send(model), 'hex'), model FROM models},
	# it has no binary form
	hamming_ball => q{SELECT '', hamming_ball(code_of(i), i - 2) FROM generate_series(1, 4) i UNION ALL SELECT '', hamming_ball('x1', 2147483647)});
sub change
{
	my ($value) = @_;
	foreach (1 .. 1 + int rand 3)
	{
		my $place = int rand(1 + length $value);
		my $kind = rand();
		if ($kind < 0.6 && $place < length $value) { substr($value, $place, 1) = chr int rand 256; }
		elsif ($kind < 0.8) { $value = substr($value, 0, $place); }
		else { substr($value, $place, 0) = join '', map { chr int rand 256 } 1 .. 1 + int rand 9; }
	}
	return $value;
}
my $directory = PostgreSQL::Test::Utils::tempdir();
foreach my $type (sort keys %samples)
{
	my @samples = map { [ split /\|/ ] } split /\n/, $node->safe_psql('postgres', $samples{$type});
	my (@text, @binary);
	foreach my $i (1 .. 60 * $times)
	{
		my ($hex, $text) = @{ one_of(@samples) };
		(my $changed = change($text)) =~ s/[\0\x80-\xff]/?/g;
		$changed =~ s/'/''/g;
		$changed =~ s/[\r\n;]//g;
		push @text, "SELECT '$changed'::$type";
		next if $hex eq '';
		my $bytes = change(pack('H*', $hex));
		open my $file, '>:raw', "$directory/$type.$i" or die;
		# signature, flags, no header extension; one row of one field; the end
		print $file "PGCOPY\n\xff\r\n\0", pack('NN', 0, 0), pack('nN', 1, length $bytes), $bytes, pack('n', 0xffff);
		close $file;
		push @binary, "COPY received_$type FROM '$directory/$type.$i' (FORMAT binary)";
	}
	survives("$type: text", @text);
	next if $type eq 'hamming_ball';
	survives("$type: binary", "CREATE TABLE received_$type (value $type)", @binary, "SELECT value::text FROM received_$type");
}

# Stored models with changed bytes, some with a checksum that is right again; of rows, and of model tables.

# Replaces a value in the files of its table: it is in the row, or in the chunks of its TOAST table.
sub replace_stored
{
	my ($files, $old, $new) = @_;
	my $chunk = index($files->{heap}, $old) >= 0 ? length $old : 1996;
	my $file = $chunk == length $old ? 'heap' : 'toast';
	for (my $i = 0; $i < length $old; $i += $chunk)
	{
		my $place = index($files->{$file}, substr($old, $i, $chunk));
		die "a stored model was not found" if $place < 0;
		substr($files->{$file}, $place, length substr($old, $i, $chunk)) = substr($new, $i, $chunk);
	}
	return;
}

my @kinds = map { "seed => $_, " . one_of(q{tracker => 'opast'}, q{rotation => 'unifdiag'}, q{tracker => 'osh', rotation => 'isohash'}, q{tracker => 'lsh', rotation => 'none'}, q{tracker => 'hadamard', rotation => 'none'}, q{"normalize" => true}) } 1 .. 12 * $times;
$node->safe_psql('postgres', 'CREATE TABLE stored (id int, model sketcher)');
foreach my $i (1 .. @kinds)
{
	# each of other rows, so that no two have the same bytes
	$node->safe_psql('postgres', "INSERT INTO stored SELECT $i, sketcher_learn(sketcher_new(16, 8, $kinds[$i - 1]), vector_of(i * 7 + $i)) FROM generate_series(1, @{[ one_of(5, 40, 300) ]}) i");
}
my @attached = map { "attached_$_" } 1 .. 4;
foreach my $i (1 .. @attached)
{
	my $name = $attached[ $i - 1 ];
	$node->safe_psql('postgres', "CREATE TABLE $name (id int, v real[]); INSERT INTO $name SELECT i, vector_of(i * 5 + $i) FROM generate_series(1, 100) i;
		SELECT sketcher_attach('$name', 'v', 'code', 8, auto_refresh => NULL); INSERT INTO $name SELECT i, vector_of(i * 3 + $i) FROM generate_series(1, 50) i;
		CALL sketcher_refresh('$name', 'code', min_drift => 1)");
}
my @values = map { [ split /\|/ ] } split /\n/, $node->safe_psql('postgres',
	"SELECT 'stored', encode(sketcher_send(model), 'hex') FROM stored UNION ALL " . join ' UNION ALL ', map { "SELECT '${_}_code_model', encode(sketcher_send(" . one_of('published', 'learning') . "), 'hex') FROM ${_}_code_model" } @attached);
my %files;
foreach my $table ('stored', map { "${_}_code_model" } @attached)
{
	# no remains of earlier values
	$node->safe_psql('postgres', "VACUUM FULL $table");
	@{ $files{$table}{path} }{qw(heap toast)} = map { $node->data_dir . "/$_" } split /\|/, $node->safe_psql('postgres', "SELECT pg_relation_filepath(oid), pg_relation_filepath(reltoastrelid) FROM pg_class WHERE oid = '$table'::regclass");
}
$node->stop;
foreach my $table (values %files)
{
	$table->{$_} = slurp_file($table->{path}{$_}) foreach 'heap', 'toast';
}
foreach my $value (@values)
{
	my ($table, $hex) = @$value;
	my $old = pack('H*', $hex);
	my $new = $old;
	substr($new, one_of(int rand 88, int rand length $new), 1) = chr int rand 256 foreach 1 .. 1 + int rand 3;
	substr($new, 8, 4) = pack('N', Checksum::crc32c(substr($new, 0, 8) . substr($new, 12))) if rand() < 0.7;
	replace_stored($files{$table}, $old, $new);
}
foreach my $table (values %files)
{
	foreach my $kind ('heap', 'toast')
	{
		open my $file, '>:raw', $table->{path}{$kind} or die;
		print $file $table->{$kind};
		close $file;
	}
}
$node->start;
foreach my $id (1 .. @kinds)
{
	my $model = "(SELECT model FROM stored WHERE id = $id)";
	survives("stored model $id", (map { "SELECT $_" } "sketcher_hash($model, '{$vector}')", (map { "sketcher_$_($model)" } qw(info mean basis rotation covariance send learn_final)), "$model\::text",
		"sketcher_drift($model, (SELECT model FROM models WHERE id = 1))", "sketcher_add($model, '{$vector}'::real[])", "sketcher_merge($model, (SELECT model FROM models WHERE id = 1))", "sketcher_merge((SELECT model FROM models WHERE id = 1), $model)"),
		"SELECT sketcher_learn($model, v), sketcher_merge($model) FROM items", "SELECT sketcher_stream($model, v) OVER (ORDER BY id) FROM items LIMIT 10");
}
foreach my $name (@attached)
{
	survives("model table of $name", "SELECT sketcher_hash('${name}_code_model', '{$vector}')", "SELECT sketcher_drift(published, learning) FROM ${name}_code_model", "INSERT INTO $name VALUES (0, '{$vector}')",
		"UPDATE $name SET v = '{$vector}' WHERE id < 10", "CALL sketcher_refresh('$name', 'code')", "SELECT sketcher_recall('$name', 'v', 'code')", "SELECT sketcher_detach('$name', 'code')");
}

# Pages with changed bytes: many tables at once, since the server has to be stopped for it.
my $tables = 20;
foreach my $search (@Items::searches)
{
	my @names = map { "damaged_$search->{kind}_$_" } 1 .. $tables;
	$node->safe_psql('postgres', "CREATE TABLE $_ ($Items::columns); INSERT INTO $_ SELECT $Items::row FROM generate_series(1, 700) i; INSERT INTO $_ VALUES (0, NULL, NULL); CREATE INDEX ${_}_index ON $_ $search->{index}") foreach @names;
	my %path = map { ($_ => $node->data_dir . '/' . $node->safe_psql('postgres', "SELECT pg_relation_filepath('${_}_index')")) } @names;
	$node->stop;
	my %good = map { ($_ => slurp_file($path{$_})) } @names;
	foreach my $round (1 .. 2 * $times)
	{
		foreach my $name (@names)
		{
			my $content = $good{$name};
			foreach (1 .. 1 + int rand 4)
			{
				my $page = 8192 * int rand(length($content) / 8192);
				# most often where a page says what it holds: its beginning and its end
				my $place = one_of(int rand 64, 24 + int rand 128, 8191 - int rand 64, int rand 8192);
				substr($content, $page + $place, 1) = chr one_of(0, 255, 128, int rand 256);
			}
			open my $file, '>:raw', $path{$name} or die;
			print $file $content;
			close $file;
		}
		$node->start;
		survives("round $round, $_", 'SET enable_seqscan = off', "SELECT count(*) FROM (SELECT id FROM $_ ORDER BY $search->{order} LIMIT 300) q",
			"SELECT count(*) FROM (SELECT id FROM $_ ORDER BY $search->{order}) q", "SELECT $search->{kind}_info('${_}_index')", "SELECT $search->{check}('${_}_index')",
			"INSERT INTO $_ SELECT $Items::row FROM generate_series(701, 720) i", "DELETE FROM $_ WHERE id % 9 = 0", "VACUUM $_", "SELECT count(*) FROM (SELECT id FROM $_ ORDER BY $search->{order}) q",
			"REINDEX INDEX ${_}_index", "SELECT $search->{check}('${_}_index')") foreach @names;
		$node->stop;
		# what was made anew has another file
		$node->start;
		%path = map { ($_ => $node->data_dir . '/' . $node->safe_psql('postgres', "SELECT pg_relation_filepath('${_}_index')")) } @names;
		$node->stop;
		%good = map { ($_ => slurp_file($path{$_})) } @names;
	}
	$node->start;
}

unlike(slurp_file($node->logfile), qr/TRAP|PANIC|terminated by signal/, 'nothing crashed');
$node->stop;
done_testing();
