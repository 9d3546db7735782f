# Values and index files that an earlier version has stored, in test/data, are read, and mean what they meant.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $data = 'test/data';
my $node = PostgreSQL::Test::Cluster->new('formats');
# pages of the samples have no checksums
$node->init(extra => [ `initdb --help` =~ /(--no-data-checksums)/ ? $1 : () ]);
$node->append_conf('postgresql.conf', "autovacuum = off\n");
$node->start;
sub value { return $node->safe_psql('postgres', $_[0]); }

value('CREATE EXTENSION unifdiag');
$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', "$data/samples.sql", $node->connstr('postgres') ], 'the table of the samples is made');
value(q{
	CREATE TABLE codes (digits bit varying, code bithash);
	CREATE TABLE models (name text, about text, model sketcher);
	CREATE TABLE states (name text, part int, rows bigint, mean text, state sketcher);
	CREATE AGGREGATE combined(sketcher) (SFUNC = sketcher_combine, STYPE = sketcher, FINALFUNC = sketcher_learn_final);
	CREATE FUNCTION about(m sketcher) RETURNS text LANGUAGE sql AS $$
		SELECT concat_ws(' ', dims, bits, rows, tracker, rotation, stable, center, forgetting, seed, round(explained_variance::numeric, 3),
			CASE WHEN rows >= bits THEN (SELECT string_agg(sketcher_hash(m, sample_vector(100000 + i, dims))::text, ' ' ORDER BY i) FROM generate_series(1, 8) i) END)
		FROM sketcher_info(m) $$;
	CREATE FUNCTION about_mean(m sketcher) RETURNS text LANGUAGE sql AS
		$$ SELECT string_agg(round(x::numeric, 2)::text, ' ') FROM unnest(sketcher_mean(m)) x $$});

my %digest;
foreach my $form ('text', 'binary')
{
	value("TRUNCATE codes, models, states");
	$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres'),
		map { ('-c', "\\copy $_ FROM '$data/$_.$form' (FORMAT $form)") } qw(codes models states) ], "$form: values are read");

	is(value('SELECT count(*), count(*) FILTER (WHERE code::text = digits::text AND length(code) = length(digits)) FROM codes'), '15|15', "$form: codes have their digits");
	is(value('SELECT count(*) FROM models'), 22, "$form: models are there");
	is(value('SELECT name, about(model) FROM models WHERE about(model) <> about'), '', "$form: models say of themselves, and answer, what they did");
	is(value(q{SELECT name FROM models WHERE (sketcher_info(sketcher_add(model, sample_vector(1, 8)))).rows <> (sketcher_info(model)).rows + 1}), '', "$form: models learn on");
	is(value(q{SELECT count(*), count(*) FILTER (WHERE (sketcher_info(state)).rows = rows AND about_mean(state) = mean),
		count(*) FILTER (WHERE get_byte(sketcher_send(state), 7) & 4 > 0) FROM states}), '4|4|2', "$form: states have their rows and means, and two a model to start from");
	is(value(q{SELECT name, (sketcher_info(combined(state ORDER BY part))).rows FROM states GROUP BY name ORDER BY name}), "agg|200\nlearn|300", "$form: states are combined");
	# the rows of the base are those of the first state
	is(value(q{SELECT max(abs(learnt - (2 * first + second) / 3)) < 1e-4 FROM unnest((SELECT sketcher_mean(combined(state)) FROM states WHERE name = 'learn'),
		(SELECT sketcher_mean(state) FROM states WHERE name = 'agg' AND part = 0), (SELECT sketcher_mean(state) FROM states WHERE name = 'agg' AND part = 1)) m(learnt, first, second)}),
		't', "$form: a base counts once");
	$digest{$form} = value(q{SELECT md5(string_agg(code::text, ',' ORDER BY length(code))) FROM codes
		UNION ALL SELECT md5(string_agg(model::text, ',' ORDER BY name)) FROM models UNION ALL SELECT md5(string_agg(state::text, ',' ORDER BY name, part)) FROM states});
}
is($digest{text}, $digest{binary}, 'both forms are of the same values');

# what was written down when the files were made
my %about = map { split /\t/ } split /\n/, slurp_file("$data/indexes.text");
my $rows_of = q{SELECT md5(string_agg(ctid::text || samples::text, ',' ORDER BY id)) FROM samples};
my %kinds = (
	samples_by_bithash => { check => 'hamming_check', info => "hamming_info('samples_by_bithash')::text", order => 'by_bithash <~> sample_bits(0, 100)::bithash', within => 'hamming_within(by_bithash, sample_bits(0, 100)::bithash, 44)' },
	samples_by_bit => { check => 'hamming_check', info => "hamming_info('samples_by_bit')::text", order => 'by_bit <~> sample_bits(0, 70)::bithash', within => 'hamming_within(by_bit, sample_bits(0, 70), 30)' },
	samples_by_bigint => { check => 'hamming_check', info => "hamming_info('samples_by_bigint')::text", order => 'by_bigint <~> sample_bits(0, 64)::bit(64)::bigint', within => 'hamming_within(by_bigint, sample_bits(0, 64)::bit(64)::bigint, 27)' },
	samples_by_vector => { check => 'sketch_check', info => "(SELECT concat_ws(' ', version, bits, dims, rows, nulls, unsketched, learnt) FROM sketch_info('samples_by_vector'))", order => 'by_vector <-> sample_vector(0, 24)', within => undef });
my $by_index = 'SET unifdiag.recall = 1; SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off';
my $by_scan = 'SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off';

# The index is used, and gives what a sequential scan gives.
sub is_right
{
	my ($index, $name) = @_;
	my ($check, $order, $within) = @{ $kinds{$index} }{qw(check order within)};
	my ($status, undef, $error) = $node->psql('postgres', "SELECT $check('$index')");
	is($error, '', "$index $name: the check finds nothing");
	my $distances = "SELECT string_agg(coalesce(d::text, '-'), ' ') FROM (SELECT $order AS d FROM samples ORDER BY $order) q";
	like(value("$by_index; EXPLAIN SELECT $order FROM samples ORDER BY $order"), qr/using $index/, "$index $name: a search uses it");
	is(value("$by_index; $distances"), value("$by_scan; $distances"), "$index $name: searches are right");
	return unless defined $within;
	my $found = "SELECT count(*), sum(id) FROM samples WHERE $within";
	is(value("$by_index; $found"), value("$by_scan; $found"), "$index $name: conditions are right");
	cmp_ok((split /\|/, value($found))[0], '>', 10, "$index $name: and find rows");
	return;
}

# Pages without their headers, which tell of places in a log.
sub entries
{
	return join '', map { substr($_, 24) } unpack('(a8192)*', slurp_file($_[0]));
}

my $little = unpack('v', pack('S', 1)) == 1;
SKIP:
{
	skip 'pages of the samples are of 8 kB, of a little-endian CPU with 64 bits', 1
	  unless $little && value('SHOW block_size') == 8192 && value('SELECT max_data_alignment FROM pg_control_init()') == 8;
	is(value($rows_of), $about{samples}, 'the table has the same rows at the same places');
	foreach my $index (sort keys %kinds)
	{
		# another file than the one that is put in its place
		value("REINDEX INDEX $index");
		my $path = $node->data_dir . '/' . value("SELECT pg_relation_filepath('$index')");
		$node->stop;
		isnt(entries("$data/$index"), entries($path), "$index: a fresh one has other pages");
		system('cp', "$data/$index", $path) == 0 or die;
		$node->start;
		is(value("SELECT $kinds{$index}{info}"), $about{$index}, "$index: says what it did");
		is_right($index, 'as it was stored');
	}
	# and all goes on
	value('SELECT add_samples(901, 2000); DELETE FROM samples WHERE id % 4 = 1');
	value('VACUUM (INDEX_CLEANUP on) samples');
	is_right($_, 'after changes') foreach sort keys %kinds;
}

$node->stop;
unlike(slurp_file($node->logfile), qr/TRAP|PANIC/, 'nothing went wrong behind the scenes');
done_testing();
