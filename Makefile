# Everything lives in the project's own folders: .venv, .jars and the state in $TWINLAKE_HOME (default .twinlake), the demo's in .twinlake-demo.
.DEFAULT_GOAL := help
.PHONY: help install jars demo test quick faults proof chaos cluster-test store-test up down bench bench-following bench-long bench-idle bench-kinds bench-look-ups bench-rebuilds bench-references bench-scale bench-witness docs pictures site wheel lint ci clean
PY := .venv/bin/python
INSTALLED := .venv/.installed
# of pyproject.toml; [dev] is what the tests need, and no image
EXTRAS := server,airflow,hdfs,dev
JARS := .jars/.complete
CLASSES := .jars/classes/twinlake.jar
ARCHIVE := .jars/.archived
DRIVERS := .jars/drivers/.complete
SITE := build/site/index.html
# of tests, each with a Spark session of 2 GB: as many as two cores feed
WORKERS := 2

help:
	@echo "make demo     install, start everything, run the main job (leaves the services up)"
	@echo "make test     install what the tests need and run them, with one kill that the seed draws"
	@echo "make quick    what one runs after each edit: tests without Spark, and one through a broker, log, table and view"
	@echo "make faults   what takes longer, of all of it SHARD=name: kills, full disks, a cluster, other Airflows, a week (hours)"
	@echo "make proof    run every shard that has not passed on this commit; write proof.json and docs/proof.md (hours)"
	@echo "make chaos    MINUTES=15 SEED=n of hostile records, kills, full disks, releases and readers beside each other"
	@echo "make cluster-test  the main job and kills with executors on a Spark cluster (about 15 minutes)"
	@echo "make store-test  the main job, kills, races and readers over a lake in a real HDFS (about 20 minutes; fetches its jar)"
	@echo "make up       start the services; 'make down' stops them, and those of the demo"
	@echo "make bench    measure against a plain loop, and what small work costs (about 20 minutes)"
	@echo "make bench-long  a cycle at the 50,000th step, rebuilds of 20 million records and of millions of keys (about 15 minutes)"
	@echo "make bench-following  how soon readers of a table have a record, and what many cost (about 5 minutes)"
	@echo "make bench-look-ups  look-ups by key beside the stream, against SQL (about 5 minutes)"
	@echo "make bench-idle  how long check and up take, and what every part costs when idle (about 8 minutes)"
	@echo "make bench-kinds  every kind and measure against counting and summing (about 15 minutes)"
	@echo "make bench-references  joins with a table of 5 million keys, without services (about 3 minutes)"
	@echo "make bench-scale  what grows with ids, files, commits and partitions, without services (about a minute)"
	@echo "make bench-witness  CPU-seconds of the second engine by kind and measure, without services (about 3 minutes)"
	@echo "make bench-rebuilds  the same against rebuilds of a real lake (about 10 minutes)"
	@echo "make docs     write again what docs/ holds of the code: reference pages, the notebook, the editors' schemas"
	@echo "make pictures  take every picture of the docs anew from what runs (about 20 minutes; needs chromium)"
	@echo "make site     the documentation as pages, in build/site; every link within it must lead somewhere"
	@echo "make wheel    the package, in dist/"
	@echo "make lint     ruff, mypy and the words of before that are refused"
	@echo "make ci       what CI runs: lint, types, import direction, check, tests, the tour, the wheel, a shard that the commit draws"
	@echo "make install  only the virtual environment; 'make jars' that and the jars"
	@echo "make clean    stop the services; remove .venv and .jars (the state stays: twinlake reset removes it)"

$(INSTALLED): pyproject.toml constraints.txt infra/install.sh
	@sh infra/install.sh $(EXTRAS)

$(JARS): twinlake/setup/jars.txt twinlake/setup/jars.py | $(INSTALLED)
	@$(PY) -m twinlake.setup.jars

$(CLASSES): $(JARS) twinlake/setup/java_classes.py $(wildcard twinlake/java/twinlake/*/*.java)
	@$(PY) -m twinlake.setup.java_classes

$(ARCHIVE): $(INSTALLED) $(CLASSES) twinlake/setup/class_archive.py
	@$(PY) -m twinlake.setup.class_archive

$(DRIVERS): tests/drivers/drivers.txt twinlake/setup/jars_drivers.txt tests/drivers/__main__.py | $(JARS)
	@$(PY) -m tests.drivers

# as setup.py has it; a page that is gone is in no site
$(SITE): $(INSTALLED) $(shell find docs -type f ! -name '*.pyc') twinlake/base/version.py
	@rm -rf build/site
	@$(PY) -m sphinx --quiet --fail-on-warning --keep-going --jobs auto -d build/doctrees docs build/site
	@touch build/site $@

install: $(INSTALLED)

jars: $(INSTALLED) $(JARS) $(CLASSES) $(ARCHIVE)

demo: jars
	@$(PY) -m tests.demo

test: jars $(DRIVERS)
	@$(PY) -m pytest -n $(WORKERS)

quick: jars
	@$(PY) -m pytest -n $(WORKERS) -m quick

faults: jars $(DRIVERS) $(SITE)
	@case "$(SHARD)" in ""|store*) $(PY) -m twinlake.setup.jars hdfs ;; esac
	@if [ -z "$(SHARD)" ]; then $(PY) -m pytest -m "faults or cluster"; \
	else $(PY) -m pytest --shard="$(SHARD)" $(if $(SEED),--seed=$(SEED)); fi

proof: jars $(DRIVERS) $(SITE)
	@$(PY) -m twinlake.setup.jars hdfs
	@$(PY) -m tests.proof

chaos: jars
	@$(PY) -m tests.chaos --minutes $(or $(MINUTES),15) $(if $(SEED),--seed $(SEED))

cluster-test: jars
	@$(PY) -m pytest -m cluster tests/cluster

store-test: jars
	@$(PY) -m twinlake.setup.jars hdfs
	@$(PY) -m pytest -m faults tests/store

up: jars
	@.venv/bin/twinlake up

down:
	@if [ -x .venv/bin/twinlake ]; then .venv/bin/twinlake down; .venv/bin/twinlake --home .twinlake-demo down; \
	else echo "nothing is installed, so nothing runs"; fi

bench: jars
	@$(PY) -m benchmarks

bench-long: jars
	@$(PY) -m benchmarks.long

bench-kinds: jars
	@$(PY) -m benchmarks.kinds

bench-witness: install
	@$(PY) -m benchmarks.witness

bench-rebuilds: jars
	@$(PY) -m benchmarks.rebuilds

bench-references: jars
	@$(PY) -m benchmarks.references

bench-scale: install
	@$(PY) -m benchmarks.scale

bench-idle: jars
	@$(PY) -m benchmarks.idle

bench-following: jars
	@$(PY) -m benchmarks.following

bench-look-ups: jars
	@$(PY) -m benchmarks.look_ups

docs: jars
	@$(PY) -m twinlake.reference
	@$(PY) -m tests.tutorials.notebook > .jars/docs.made && mv .jars/docs.made docs/tutorials/notebook.ipynb
	@.venv/bin/twinlake editor-schemas docs/editor

pictures: demo $(DRIVERS)
	@$(PY) -m tests.console_pictures --home .twinlake-demo
	@.venv/bin/twinlake --home .twinlake-demo down
	@$(PY) -m tests.tutorials.pictures
	@$(PY) -m tests.tutorials.recording

site: $(SITE)

wheel: jars $(SITE)
	@.venv/bin/uv build

lint: install
	@$(PY) -m ruff check .
	@$(PY) -m mypy
	@$(PY) -m tests.words

ci:
	@.ci/run

clean: down
	rm -rf .venv .jars .twinlake_cache build dist *.egg-info
