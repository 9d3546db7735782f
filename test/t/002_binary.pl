# The binary form of bithash: core's bit's, byte for byte; nothing else gets in.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('binary');
# whatever the environment's locale is: one test is about characters of several bytes
$node->init(extra => [ '--no-locale', '--encoding=UTF8' ]);
$node->start;
my $directory = PostgreSQL::Test::Utils::tempdir();

$node->safe_psql('postgres', 'CREATE EXTENSION unifdiag');

# COPY BINARY of bit(64) loads into bithash(64), and comes out as the same file
$node->safe_psql('postgres', qq{
	CREATE TABLE bits (id int, code bit(64));
	INSERT INTO bits SELECT i, ('x' || substr(md5(i::text), 1, 16))::bit(64) FROM generate_series(1, 1000) i;
	INSERT INTO bits VALUES (0, NULL);
	CREATE TABLE codes (id int, code bithash(64));
	COPY bits TO '$directory/bits' (FORMAT binary);
	COPY codes FROM '$directory/bits' (FORMAT binary);
	COPY codes TO '$directory/codes' (FORMAT binary);
});
is($node->safe_psql('postgres', 'SELECT count(*), count(bits.code) FROM codes JOIN bits USING (id)
	WHERE codes.code::text IS NOT DISTINCT FROM bits.code::text'), '1001|1000', 'bit(64) loads into bithash(64)');
ok(slurp_file("$directory/bits") eq slurp_file("$directory/codes"), 'and comes out byte for byte');

# the same without a type modifier, at lengths that are no multiples of eight
$node->safe_psql('postgres', qq{
	CREATE TABLE varbits AS SELECT n, substr(repeat('1101001110010110', 4001), 1, n)::bit varying AS code
	FROM (SELECT generate_series(1, 600) UNION ALL VALUES (63999), (64000)) l(n);
	CREATE TABLE varcodes (n int, code bithash);
	COPY varbits TO '$directory/bits' (FORMAT binary);
	COPY varcodes FROM '$directory/bits' (FORMAT binary);
	COPY varcodes TO '$directory/codes' (FORMAT binary);
});
ok(slurp_file("$directory/bits") eq slurp_file("$directory/codes"), 'lengths 1 to 600 and the largest, byte for byte');

# A COPY BINARY file of one row with one field.
sub copy_file
{
	my ($field) = @_;
	return "PGCOPY\n\xff\r\n\0" . pack('NN', 0, 0) . pack('n', 1) . pack('N', length $field) . $field . pack('n', 0xffff);
}

# What the server says to that field in a column of that type; '' if it accepts it.
sub offer
{
	my ($type, $field) = @_;
	open my $file, '>:raw', "$directory/offer" or die $!;
	print $file copy_file($field);
	close $file;
	my ($code, $stdout, $stderr) = $node->psql('postgres', qq{
		\\set VERBOSITY verbose
		CREATE TEMPORARY TABLE offered (code $type);
		COPY offered FROM '$directory/offer' (FORMAT binary);
		SELECT code FROM offered;
	});
	return $stderr =~ /^(?:psql:<stdin>:\d+: )?ERROR:  (\w{5}: .*)$/m ? $1 : $stdout;
}

is(offer('bithash', pack('N', 12) . "\xab\xc0"), '101010111100', 'a good message');
is(offer('bithash', pack('N', 12) . "\xab\xc1"), '22P03: binary form of a code of 12 bits has bits set beyond its end', 'padding set');
is(offer('bithash', pack('N', 12) . "\xab"), '22P03: binary form of a code of 12 bits has 1 bytes of bits instead of 2', 'truncated');
is(offer('bithash', pack('N', 12)), '22P03: binary form of a code of 12 bits has 0 bytes of bits instead of 2', 'no bits');
is(offer('bithash', pack('N', 12) . "\xab\xc0\0"), '22P03: binary form of a code of 12 bits has 3 bytes of bits instead of 2', 'over-long');
is(offer('bithash', pack('N', 0)), '22P03: bithash cannot have 0 bits', 'length 0');
is(offer('bithash', pack('N', 0xffffffff) . "\xab"), '22P03: bithash cannot have -1 bits', 'negative length');
is(offer('bithash', pack('N', 64001) . ("\0" x 8001)), '54000: bithash cannot have 64001 bits', 'too long');
is(offer('bithash', pack('N', 0x7fffffff) . "\0"), '54000: bithash cannot have 2147483647 bits', 'absurdly long');
is(offer('bithash(8)', pack('N', 12) . "\xab\xc0"), '22026: code of 12 bits does not match type bithash(8)', 'type modifier');
like(offer('bithash', "\0\0"), qr/^08P01: insufficient data left in message/, 'not even a length');
like(offer('bithash', ''), qr/^08P01: insufficient data left in message/, 'nothing');

# a digit of more than one byte is shown whole
my ($code, $stdout, $stderr) = $node->psql('postgres', "SET client_encoding = utf8; SELECT '01\xc3\xa90'::bithash");
like($stderr, qr/"\xc3\xa9" is not a valid binary digit/, 'a wrong digit in UTF-8');

# messages of random bytes: an error, or a code that equals itself as text; no crash
srand(20180415);
my $script = "CREATE TEMPORARY TABLE fuzzed (code bithash);\n";
foreach my $i (1 .. 300)
{
	my $nbits = int(rand(4)) ? int(rand(80)) : int(rand(2**32));
	my $bytes = int(rand(3)) ? int(($nbits % 80 + 7) / 8) : int(rand(12));
	my $field = pack('N', $nbits) . join('', map { chr(int(rand(256))) } 1 .. $bytes);
	$field = substr($field, 0, int(rand(length($field) + 1))) unless int(rand(5));
	open my $file, '>:raw', "$directory/fuzz$i" or die $!;
	print $file copy_file($field);
	close $file;
	$script .= "COPY fuzzed FROM '$directory/fuzz$i' (FORMAT binary);\n";
}
$script .= "SELECT count(*) FILTER (WHERE code::text::bithash = code AND length(code::text) = length(code)), count(*) FROM fuzzed;\n";
($code, $stdout, $stderr) = $node->psql('postgres', $script, on_error_stop => 0);
my ($same, $accepted) = split /\|/, $stdout;
is($same, $accepted, "of 300 random messages $accepted were codes, and good ones");
cmp_ok($accepted, '>', 0, 'some were');
my @errors = $stderr =~ /ERROR:/g;
is(@errors + $accepted, 300, 'and the others errors');

$node->stop;
done_testing();
