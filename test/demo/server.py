"""Statements for the server that psql finds, and searches with their times and what they find."""
import csv
import io
import statistics
import subprocess
import sys

import numpy as np

import copy_rows

# statement has $1 for the query's vector, and returns ids; queries returns (id, vector)
SEARCHES = """
CREATE OR REPLACE FUNCTION searches(statement text, queries text, OUT query int, OUT ids int[], OUT milliseconds float8)
RETURNS SETOF record LANGUAGE plpgsql SET jit = off SET max_parallel_workers_per_gather = 0 AS $$
DECLARE
	all_of_it text := 'SELECT array_agg(id) FROM (' || statement || ') AS found';
	warm boolean := false;
	vector real[];
	start timestamptz;
BEGIN
	FOR query, vector IN EXECUTE queries LOOP
		-- the first one brings into memory what all need
		IF NOT warm THEN
			EXECUTE all_of_it INTO ids USING vector;
			warm := true;
		END IF;
		start := clock_timestamp();
		EXECUTE all_of_it INTO ids USING vector;
		milliseconds := extract(epoch FROM clock_timestamp() - start) * 1000;
		RETURN NEXT;
	END LOOP;
END
$$
"""


def psql(*statements, data=None, head=False):
    """The rows that the statements return, as text, with the columns' names if asked for; one connection runs them all."""
    arguments = ["psql", "-X", "-q", "--csv", "-v", "ON_ERROR_STOP=1"] + ([] if head else ["-t"])
    for statement in statements:
        arguments += ["-c", statement]
    done = subprocess.run(arguments, input=data, capture_output=True)
    if done.returncode != 0:
        sys.exit("\n" + done.stderr.decode())
    csv.field_size_limit(sys.maxsize)
    return list(csv.reader(io.StringIO(done.stdout.decode())))


def value(statement):
    return psql(statement)[0][0]


def load(table, integers, matrix):
    """Rows of integers and a vector each."""
    out = io.BytesIO()
    copy_rows.write_rows(out, integers, matrix)
    psql(f"COPY {table} FROM STDIN (FORMAT binary)", data=out.getvalue())


def searches(statement, queries, *settings):
    """The ids found for each query, and the median time of a search in milliseconds."""
    rows = psql(*settings, f"SELECT * FROM searches($q${statement}$q$, $q${queries}$q$)")
    found = {int(query): [int(each) for each in ids.strip("{}").split(",")] for query, ids, _ in rows}
    return found, statistics.median(float(milliseconds) for _, _, milliseconds in rows)


def codes(statement, rows):
    """The codes that a statement returns as one bytea, a row each."""
    return np.frombuffer(bytes.fromhex(value(statement)[2:]), np.uint8).reshape(rows, -1)


def recall(found, truth):
    """The share of the true ids that were found."""
    return float(np.mean([len(set(found[query]) & set(truth[query])) / len(truth[query]) for query in found]))
