# What a backend remembers of buffers: it must do no harm to the server's own bookkeeping, nor to the
# answers when it is out of date.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Session;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('memory');
$node->init;
# fewer buffers than index and table have pages, at first
$node->append_conf('postgresql.conf', "autovacuum = off\nshared_buffers = 512kB\nmax_connections = 10\n");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION unifdiag;
	CREATE FUNCTION code_of(i int) RETURNS bithash LANGUAGE sql IMMUTABLE AS $$ SELECT ('x' || left(md5(i::text), 16))::bit(64)::bithash $$;
	CREATE TABLE items (id int, code bithash(64), note text) WITH (fillfactor = 45);
	INSERT INTO items SELECT i, code_of(i), 'a note' FROM generate_series(1, 20000) i;
	CREATE INDEX items_code ON items USING hamming (code);
	VACUUM ANALYZE items;
	-- how many of the queries have other distances than a sequential scan with a sort, or rows that are not what they should be
	CREATE FUNCTION wrong_answers(first int, last int) RETURNS bigint LANGUAGE plpgsql AS $$
	DECLARE
		query text := 'SELECT array_agg(d), bool_and(code = code_of(id)) FROM (SELECT id, code, code <~> %1$L AS d FROM items ORDER BY code <~> %1$L LIMIT 300) q';
		wrong bigint := 0;
		by_index record;
		by_sort record;
	BEGIN
		FOR i IN first..last LOOP
			SET LOCAL enable_seqscan = off;
			EXECUTE format(query, code_of(-i)) INTO by_index;
			SET LOCAL enable_seqscan = on;
			SET LOCAL enable_indexscan = off;
			EXECUTE format(query, code_of(-i)) INTO by_sort;
			SET LOCAL enable_indexscan = on;
			wrong := wrong + (by_index IS DISTINCT FROM by_sort OR by_index.bool_and IS FALSE)::int;
		END LOOP;
		RETURN wrong;
	END $$;
});
my $session = Session->new($node);
is($session->query('SELECT wrong_answers(1, 10)'), '0', 'with fewer buffers than pages');
like($session->query(q{SET enable_seqscan = off; EXPLAIN SELECT id FROM items ORDER BY code <~> code_of(1) LIMIT 300}),
	qr/Index Scan using items_code/, 'what was compared used the index');
foreach my $change (
	'UPDATE items SET note = note || id WHERE id % 7 = 0',
	'VACUUM items',
	'DELETE FROM items WHERE id % 3 = 0',
	'VACUUM FULL items',
	'REINDEX INDEX items_code',
	'TRUNCATE items',
	q{INSERT INTO items SELECT i, code_of(i), 'a note' FROM generate_series(1, 20000) i},
	'CLUSTER items USING items_id')
{
	$node->safe_psql('postgres', 'CREATE INDEX items_id ON items (id)') if $change =~ /CLUSTER/;
	$node->safe_psql('postgres', $change);
	is($session->query('SELECT wrong_answers(11, 13)'), '0', "after another session's $change");
}
$session->quit;

# as many as needed
$node->append_conf('postgresql.conf', "shared_buffers = 32MB\n");
$node->restart;
$session = Session->new($node);
is($session->query('SELECT wrong_answers(1, 3)'), '0', 'with buffers for all');

# the server counts what we pin without its asking
my $counts = q{SELECT pg_stat_get_xact_blocks_fetched(r), pg_stat_get_xact_blocks_hit(r) FROM (VALUES ('items_code'::regclass), ('items')) AS t (r)};
my @counts = map { [ split /\|/ ] } split /\n/, $session->query(qq{
	BEGIN;
	SET LOCAL enable_seqscan = off;
	$counts;
	DO \$\$ BEGIN PERFORM id FROM items ORDER BY code <~> code_of(1) LIMIT 300; END \$\$;
	$counts;
	COMMIT});
my ($index, $table) = map { [ $counts[ $_ + 2 ][0] - $counts[$_][0], $counts[ $_ + 2 ][1] - $counts[$_][1] ] } 0 .. 1;
my $pages = $node->safe_psql('postgres', q{SELECT pages FROM hamming_info('items_code')});
cmp_ok($index->[0], '>=', $pages, 'all pages of the index were fetched');
is($index->[1], $index->[0], 'and found in memory');
cmp_ok($table->[0], '>=', 200, 'and those of the rows');
is($table->[1], $table->[0], 'as well');

sub has_extension
{
	my ($name) = @_;
	return $node->safe_psql('postgres', "SELECT count(*) FROM pg_available_extensions WHERE name = '$name'");
}

SKIP:
{
	skip 'pg_buffercache is not available in this server', 1 unless has_extension('pg_buffercache');
	$node->safe_psql('postgres', 'CREATE EXTENSION pg_buffercache');
	# a page counts as used once a second
	$session->query(q{DO $$ BEGIN FOR i IN 1..4 LOOP PERFORM id FROM items ORDER BY code <~> code_of(i) LIMIT 3; PERFORM pg_sleep(1.01); END LOOP; END $$});
	cmp_ok($node->safe_psql('postgres', q{SELECT min(usagecount) FROM pg_buffercache WHERE relfilenode = pg_relation_filenode('items_code') AND relforknumber = 0 AND relblocknumber > 0}),
		'>=', 3, 'pages that are searched count as used');
}

SKIP:
{
	skip 'pageinspect is not available in this server', 2 unless has_extension('pageinspect');
	$node->safe_psql('postgres', 'CREATE EXTENSION pageinspect');
	my $unpruned = q{
		SELECT count(*) FROM generate_series(0, pg_relation_size('items') / 8192 - 1) AS b
		WHERE NOT EXISTS (SELECT FROM heap_page_items(get_raw_page('items', b::int)) WHERE lp_flags = 2)};
	my $blocks = $node->safe_psql('postgres', q{SELECT pg_relation_size('items') / 8192});
	$node->safe_psql('postgres', q{UPDATE items SET note = 'another'});
	is($node->safe_psql('postgres', $unpruned), $blocks, 'an update leaves dead rows on all pages');
	$session->query(q{SET enable_seqscan = off; DO $$ BEGIN PERFORM id FROM items ORDER BY code <~> code_of(1); END $$});
	is($node->safe_psql('postgres', $unpruned), '0', 'a scan prunes the pages that it visits');
}
$session->quit;
$node->stop;

done_testing();
