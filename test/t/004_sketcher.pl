# The stored form of sketcher: exact copies through COPY and dump, no way in for anything else.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Checksum;
use MIME::Base64;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('sketcher');
$node->init;
$node->start;
my $directory = PostgreSQL::Test::Utils::tempdir();

$node->safe_psql('postgres', q{
	CREATE EXTENSION unifdiag;
	CREATE TABLE vectors AS SELECT i AS id, ARRAY(SELECT sin(i * k) * (1 + k % 3) FROM generate_series(1, 12) k)::real[] AS v FROM generate_series(1, 500) i;
	CREATE TABLE models AS SELECT bits, sketcher_agg(v, bits ORDER BY id) AS model FROM vectors, generate_series(1, 12) bits GROUP BY bits;
	INSERT INTO models VALUES (100, sketcher_new(960, 64)), (101, NULL);
	INSERT INTO models SELECT 102, sketcher_learn(sketcher_new(12, 6, rotation => 'none', forgetting => 0.9, seed => 5), v ORDER BY id) FROM vectors;
	INSERT INTO models SELECT 103, sketcher_learn(sketcher_new(12, 6, rotation => 'random', stable => false, center => false), v ORDER BY id) FROM vectors;
	INSERT INTO models SELECT 200 + row_number() OVER (ORDER BY tracker, rotation), sketcher_learn(sketcher_new(12, 6, tracker => tracker, rotation => rotation), v ORDER BY id)
		FROM vectors, unnest(ARRAY['opast', 'osh', 'lsh', 'hadamard']) tracker, unnest(ARRAY['none', 'isohash', 'itq', 'neighbour', 'unifdiag']) rotation
		WHERE id <= 100 AND (rotation = 'none' OR tracker IN ('opast', 'osh')) GROUP BY tracker, rotation;
	INSERT INTO models SELECT 104, sketcher_agg(v, 10) FROM vectors WHERE id <= 3;
});
my $digest = q{SELECT md5(string_agg(bits || coalesce(model::text, '-'), ',' ORDER BY bits)) FROM models};
my $codes = q{SELECT md5(string_agg(sketcher_hash(model, v)::text, ',' ORDER BY bits, id)) FROM models, vectors WHERE bits <> 100};
my ($before, $codes_before) = map { $node->safe_psql('postgres', $_) } $digest, $codes;

foreach my $format ('text', 'binary')
{
	$node->safe_psql('postgres', qq{
		COPY models TO '$directory/models' (FORMAT $format);
		TRUNCATE models;
		COPY models FROM '$directory/models' (FORMAT $format);
	});
	is($node->safe_psql('postgres', $digest), $before, "COPY as $format and back");
}
$node->safe_psql('postgres', 'CREATE DATABASE restored');
$node->command_ok([ 'pg_dump', '-f', "$directory/dump", $node->connstr('postgres') ], 'dump');
$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', "$directory/dump", $node->connstr('restored') ], 'restore');
is($node->safe_psql('restored', $digest), $before, 'models are there after restoring');
is($node->safe_psql('restored', $codes), $codes_before, 'and give the same codes');

# a model of 64 x 960 is hardly larger than its basis
my $size = $node->safe_psql('postgres', q{
	SELECT (sketcher_info(sketcher_agg(ARRAY(SELECT sin(i * k) FROM generate_series(1, 960) k)::real[], 64))).bytes FROM generate_series(1, 70) i});
cmp_ok($size, '<=', 1.3 * 4 * 64 * 960 + 2 * 8 * 64 * 64, "64 bits x 960 dimensions take $size bytes");

# The value with other bytes at an offset and a checksum that is right again.
sub forge
{
	my ($value, $offset, $bytes) = @_;
	substr($value, $offset, length $bytes) = $bytes;
	substr($value, 8, 4) = pack('N', Checksum::crc32c(substr($value, 0, 8) . substr($value, 12)));
	return $value;
}

# What the server says to such a value; '' if it accepts it.
sub offer
{
	my ($value) = @_;
	my ($code, $stdout, $stderr) = $node->psql('postgres', sprintf(q{
		\set VERBOSITY verbose
		SELECT length(sketcher_hash('%s'::sketcher, ARRAY[1,2,3,4,5,6,7,8,9,10,11,12]::real[]))}, encode_base64($value, '')));
	return $stderr =~ /^(?:psql:<stdin>:\d+: )?ERROR:  (\w{5}: .*)$/m ? $1 : '';
}

my $good = decode_base64($node->safe_psql('postgres', 'SELECT model FROM models WHERE bits = 6'));
is(offer(forge($good, 0, '')), '', 'a good value is accepted with the checksum computed here');
my $damaged = '22P03: sketcher is damaged: ';
my $infinity = pack('d>', 9**9**9);
foreach my $case (
	[ 4, pack('n', 2), '0A000: sketcher has format version 2', 'other version' ],
	[ 6, pack('n', 0xfff0 | 3), $damaged . 'reserved bits are set', 'unknown flags' ],
	[ 22, pack('n', 1), $damaged . 'reserved bits are set', 'reserved bytes' ],
	[ 12, pack('N', 0), $damaged . 'impossible number of dimensions or bits', 'no dimensions' ],
	[ 16, pack('N', 13), $damaged . 'impossible number of dimensions or bits', 'more bits than dimensions' ],
	[ 12, pack('NN', 16000, 16000), '54000: model of 16000 bits for 16000 dimensions is too large', '16000 x 16000' ],
	[ 12, pack('NN', 16000, 1000), $damaged . 'its size does not match its contents', '16000 x 1000' ],
	[ 20, pack('C', 200), $damaged . 'unknown tracker or rotation', 'tracker' ],
	[ 21, pack('C', 200), $damaged . 'unknown tracker or rotation', 'rotation' ],
	[ 32, pack('d>', 0), $damaged . 'impossible forgetting factor', 'forgetting' ],
	[ 40, pack('q>', -1), $damaged . 'its size does not match its contents', 'negative rows' ],
	[ 40, pack('q>', 0), $damaged . 'impossible number of recent rows', 'no rows' ],
	[ 48, $infinity, $damaged . 'impossible weight', 'weight' ],
	[ 56, pack('d>', -1), $damaged . 'impossible scatter', 'scatter' ],
	[ 64, pack('N', 1000), $damaged . 'impossible exponent', 'exponent' ],
	[ 68, pack('N', 7), $damaged . 'impossible rank', 'rank' ],
	[ 72, pack('q>', 501), $damaged . 'impossible number of rows', 'rotated rows' ],
	[ 88, $infinity, $damaged . 'a number is not finite', 'mean' ],
	[ 88, pack('d>', 1e300), $damaged . 'impossible mean', 'mean too large' ],
	[ 40, pack('q>', 2**54), $damaged . 'impossible number of rows', 'too many rows' ],
	[ 88 + 96, substr($good, 88 + 96 + 48, 48), $damaged . 'rows that should be at right angles are not', 'two rows of the basis the same' ],
	[ 88 + 96 + 288, pack('d>', 1e100), $damaged . 'a covariance is larger than its rows', 'covariance too large' ],
	[ 88 + 96, pack('f>', 9**9**9), $damaged . 'a number is not finite', 'basis' ],
	[ 88 + 96, pack('f>*', (2) x 12), $damaged . 'rows that should have length 1 do not', 'basis too long' ],
	[ 88 + 96 + 288, pack('d>', -1), $damaged . 'a variance is negative', 'covariance' ],
	[ 88 + 96 + 288 + 168, pack('d>*', (0) x 6), $damaged . 'rows that should have length 1 do not', 'rotation' ],
	[ 80, pack('N', 1), $damaged . 'impossible number of waiting rows', 'waiting rows' ],
	[ 84, pack('N', 961), $damaged . 'impossible number of recent rows', 'recent rows' ],
	[ 84, pack('N', 1), $damaged . 'its size does not match its contents', 'one recent row less' ],
	[ 20, pack('C', 2), $damaged . 'its tracker takes no such rotation', 'a random basis with a rotation' ],
	[ 6, pack('n', 7), $damaged . 'its size does not match its contents', 'a base outside of an aggregate' ])
{
	my ($offset, $bytes, $expected, $name) = @$case;
	is(offer(forge($good, $offset, $bytes)), $expected, $name);
}
# the rows that its rotation remembers come last, their scales before their numbers
my $recent = unpack('N', substr($good, 84, 4));
is(offer(forge($good, length($good) - 10 * $recent, pack('f>', 1e30))), $damaged . 'a row is longer than its exponent allows', 'recent row');
# a sketch with rows that wait, the last of which comes last
my $waiting = decode_base64($node->safe_psql('postgres', q{SELECT model FROM models WHERE (sketcher_info(model)).tracker = 'osh' AND (sketcher_info(model)).rotation = 'none'}));
is(offer(forge($waiting, length($waiting) - 4, pack('f>', 1e30))), $damaged . 'a row is longer than its exponent allows', 'waiting row');
is(offer(forge($waiting, 80, pack('N', 6))), $damaged . 'impossible number of waiting rows', 'as many waiting rows as a block has');
my $itq = decode_base64($node->safe_psql('postgres', q{SELECT model FROM models WHERE (sketcher_info(model)).tracker = 'opast' AND (sketcher_info(model)).rotation = 'itq'}));
is(offer(forge($itq, length($itq) - 8, pack('d>', 1e100))), $damaged . 'a sum of signs is larger than its rows', 'sum of signs');
my (undef, undef, $full) = $node->psql('postgres', sprintf(q{SELECT sketcher_merge('%1$s', '%1$s')}, encode_base64(forge($good, 40, pack('q>', 2**53)), '')));
like($full, qr/ERROR:  model cannot learn from more than 9007199254740992 rows/, 'as many rows as can be counted');
my $random = decode_base64($node->safe_psql('postgres', q{SELECT model FROM models WHERE (sketcher_info(model)).tracker = 'hadamard'}));
is(offer(forge($random, 68, pack('N', 1))), $damaged . 'impossible rank', 'a random basis with a rank');
is(offer($good ^ ("\0" x 300 . "\1" . "\0" x (length($good) - 301))), $damaged . 'its checksum does not match its contents', 'checksum');

# with a base
my $empty = decode_base64($node->safe_psql('postgres', 'SELECT sketcher_new(12, 6)'));
my $part = forge($empty . $good, 6, pack('n', 7));
is(offer($part), '', 'a part of sketcher_learn');
$node->safe_psql('postgres', sprintf(q{
	CREATE AGGREGATE finish_parts(sketcher) (SFUNC = sketcher_combine, STYPE = sketcher, FINALFUNC = sketcher_learn_final);
	CREATE TABLE parts (model sketcher);
	INSERT INTO parts VALUES ('%s'), ('%s')}, map { encode_base64($_, '') } $part, forge($good . $good, 6, pack('n', 7))));
foreach my $format ('text', 'binary')
{
	$node->safe_psql('postgres', qq{
		COPY parts TO '$directory/parts' (FORMAT $format);
		TRUNCATE parts;
		COPY parts FROM '$directory/parts' (FORMAT $format);
	});
	is($node->safe_psql('postgres', 'SELECT (sketcher_info(finish_parts(model))).rows, min(octet_length(sketcher_send(model))) FROM parts'),
		'1000|' . length $part, "parts, combined and finished after COPY as $format");
}
is(offer(forge($empty . $part, 6, pack('n', 7))), $damaged . 'its base has a base', 'a base with a base');
is(offer(forge($empty . forge($good, 24, pack('q>', 1)), 6, pack('n', 7))), $damaged . 'its base has other options', 'a base with other options');

# Damage with the right checksum, in all functions: a value is refused when it comes in, or it works everywhere, and what comes
# of it is accepted in turn.
$node->safe_psql('postgres', q{
	CREATE FUNCTION accepted_again(model sketcher) RETURNS sketcher LANGUAGE sql AS 'SELECT model::text::sketcher';
	CREATE FUNCTION try_all(value text) RETURNS text LANGUAGE plpgsql AS $$
	DECLARE model sketcher; result sketcher; v real[] := ARRAY[1,2,3,4,5,6,7,8,9,10,11,12]; step text := 'info';
	BEGIN
		BEGIN
			model := value::sketcher;
		EXCEPTION WHEN OTHERS THEN
			RETURN 'refused';
		END;
		IF (sketcher_info(model)).dims <> 12 THEN RETURN 'usable'; END IF;
		IF (sketcher_info(model)).rows > 0 THEN
			step := 'use';
			PERFORM sketcher_hash(model, v), sketcher_mean(model), sketcher_basis(model), sketcher_rotation(model), sketcher_covariance(model), sketcher_send(model);
			IF sketcher_drift(model, model) NOT BETWEEN 0 AND 1 THEN RAISE 'drift is %', sketcher_drift(model, model); END IF;
		END IF;
		step := 'add';
		result := accepted_again(sketcher_add(model, v));
		step := 'learn';
		SELECT accepted_again(sketcher_learn(model, t.v ORDER BY id)) FROM vectors t WHERE id <= 100 INTO result;
		step := 'stream';
		PERFORM sketcher_stream(model, t.v) OVER (ORDER BY id) FROM vectors t WHERE id <= 20;
		step := 'learn far away';
		SELECT accepted_again(sketcher_learn(result, ARRAY(SELECT 1e38 * e FROM unnest(t.v) e)::real[] ORDER BY id)) FROM vectors t WHERE id <= 100 INTO result;
		step := 'hash';
		PERFORM sketcher_hash(result, v), sketcher_drift(result, result);
		step := 'merge';
		PERFORM accepted_again(sketcher_merge(model, model)), accepted_again(sketcher_merge(model, sketcher_add(model, v)));
		RETURN 'usable';
	EXCEPTION WHEN OTHERS THEN
		RETURN step || ': ' || SQLERRM;
	END $$});
srand(20180415);
my @all = map { decode_base64($_) } split /\n/, $node->safe_psql('postgres', 'SELECT model FROM models WHERE bits = 6 OR bits > 200');
is(@all, 13, 'models of all kinds');
push @all, $part, forge($good . $good, 6, pack('n', 7)), $empty;
my @doubles = map { pack('d>', $_) } 0, -1, 1, 1e-310, 1e-200, -1e-30, 1e30, 1e37, 1e200, 1e308, 9**9**9, 2**53, 2**63;
my @integers = map { pack('N', $_) } 0, 1, 2, 3, 6, 7, 99, 100, 0x7f, 0xffffff60, 0x3f800000, 0x00000001, 0x7f7fffff, 0x7fffffff, 0x80000000, 0xffffffff;
my $pick = sub { $_[int(rand(@_))] };
# A value with one to three of its bytes, integers or floats, or doubles replaced; the header and what is behind it alike.
sub damage
{
	my ($value, $told) = @_;
	foreach (1 .. 1 + int(rand(3)))
	{
		my $bytes = int(rand(3)) ? $pick->(int(rand(2)) ? @doubles : @integers) : join('', map { chr(int(rand(256))) } 1 .. 1 + int(rand(8)));
		my $end = int(rand(2)) && length($value) > 96 ? length($value) : 88;
		my $offset = 12 + int(rand(($end - 12 - length $bytes) / 4 + 1)) * 4;
		substr($value, $offset, length $bytes) = $bytes;
		$$told .= sprintf(', %s at %d', unpack('H*', $bytes), $offset);
	}
	return forge($value, 0, '');
}
my $count = $ENV{UNIFDIAG_FORGED} || 600;
my @told = map { "value $_" } 0 .. $#all, map { $_ % @all } 1 .. $count;
my $script = join '', map { sprintf("SELECT try_all('%s');\n", encode_base64($_, '')) } @all, map { damage($all[$_ % @all], \$told[$#all + $_]) } 1 .. $count;
my ($code, $stdout, $stderr) = $node->psql('postgres', $script, on_error_stop => 0);
my @said = split /\n/, $stdout;
my $usable = grep { $_ eq 'usable' } @said;
is($stderr, '', 'the server lives');
is(join("\n", map { "$told[$_]: $said[$_]" } grep { $said[$_] !~ /^(usable|refused)$/ } 0 .. $#said), '', 'nothing that came in is refused later');
is(@said, $count + @all, "$usable of them were usable, the others refused");
cmp_ok($usable, '>=', scalar @all, 'good ones among them');

# a million rows in the memory of a few
SKIP:
{
	my $session = $node->can('background_psql') ? eval { $node->background_psql('postgres') } : undef;
	skip 'needs background sessions and /proc', 3 unless -e '/proc/self/status' && $session && $session->can('query_safe');
	my $learn = q{SELECT (sketcher_info(sketcher_agg(ARRAY[sin(i), cos(i), i %% 7, i %% 11, i %% 13, sin(i::float8 * i), i %% 3, 1]::real[], 4))).rows FROM generate_series(1, %d) i};
	my $pid = $session->query_safe('SELECT pg_backend_pid()');
	my $peak = sub { slurp_file("/proc/$pid/status") =~ /VmHWM:\s+(\d+)/ ? $1 : die };
	$session->query_safe('SET work_mem = 1024');
	$session->query_safe(sprintf $learn, 50000);
	my $first = $peak->();
	is($session->query_safe(sprintf $learn, 1000000), 1000000, 'a million rows learnt');
	cmp_ok($peak->() - $first, '<', 8192, 'kB more memory for a million rows than for 50000');
	my @threads = glob("/proc/$pid/task/*");
	is(@threads, 1, 'the server process has one thread');
	$session->quit;
}

$node->stop;
done_testing();
