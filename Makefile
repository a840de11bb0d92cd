# The front door. CMake and Ninja do the work; every target installs what it needs and is missing, and nothing else.
PREFIX    ?= /usr/local
FUZZ_TIME ?= 600
SOAK_TIME ?= 600

# ninja uses one job per core; JOBS=1 make build for less.
JOBS  ?= $(shell nproc)
CMAKE  = cmake -S . -G Ninja -B
NINJA  = cmake --build
CLANG  = -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ -DWEFT_TESTS=ON

.PHONY: help run build test bench soak fuzz asan ubsan tsan portable lint format install uninstall clean
.DEFAULT_GOAL := help

help: ## show this list
	@echo "usage: make TARGET"
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  \1@\2/p' Makefile | awk -F@ '{ printf "%-12s%s\n", $$1, $$2 }'

run: build ## install what is missing, build, start the hub and say what to try
	@tools/run.sh

build: ## build the program, the library and the examples, below build/
	@tools/install.sh run
	@$(CMAKE) build --log-level=NOTICE >/dev/null
	@$(NINJA) build -j $(JOBS)

test: ## install what tests need, build each configuration, run every test
	@tools/install.sh test
	@tests/run

bench: ## measure, as multiples of a bare echo on the same machine
	@tools/install.sh bench
	@$(CMAKE) build -DWEFT_BENCH=ON --log-level=NOTICE
	@$(NINJA) build -j $(JOBS)
	@if [ -x bench/run ]; then bench/run; else echo "bench: there is no bench/run yet" >&2; exit 1; fi

soak: ## mistreat the real hub for SOAK_TIME seconds (600)
	@tools/install.sh test
	@$(CMAKE) build -DWEFT_TESTS=ON --log-level=NOTICE
	@$(NINJA) build -j $(JOBS)
	@tests/run-soak $(SOAK_TIME)

fuzz: ## fuzz each parser for FUZZ_TIME seconds (600)
	@tools/install.sh test
	@$(CMAKE) build-fuzz -DCMAKE_C_COMPILER=clang -DWEFT_FUZZ=ON --log-level=NOTICE
	@$(NINJA) build-fuzz -j $(JOBS)
	@tests/run-fuzz $(FUZZ_TIME)

asan: ## build with AddressSanitizer and run the tests
	@tools/install.sh test
	@tests/run asan

ubsan: ## the same as asan, which includes UndefinedBehaviorSanitizer
ubsan: asan

tsan: ## build with ThreadSanitizer, run the tests with threads or network
	@tools/install.sh test
	@tests/run tsan

portable: ## build without SSE2 and run the unit tests of what differs
	@tools/install.sh test
	@tests/run portable

lint: ## check format, includes and calls; print the longest functions
	@tools/install.sh lint
	@tools/lint.sh

format: ## rewrite the sources with clang-format
	@tools/install.sh lint
	@git ls-files '*.c' '*.h' '*.cc' | xargs -r clang-format -i
	@tools/readme.sh

install: build ## install below PREFIX (/usr/local); DESTDIR is put before it
	@DESTDIR="$(DESTDIR)" cmake --install build --prefix "$(PREFIX)"
	@if [ -z "$(DESTDIR)" ] && [ "$$(id -u)" -eq 0 ] && command -v ldconfig >/dev/null; then ldconfig; fi

uninstall: ## remove what "make install" installed, with the same DESTDIR
	@tools/uninstall.sh build "$(DESTDIR)"
	@if [ -z "$(DESTDIR)" ] && [ "$$(id -u)" -eq 0 ] && command -v ldconfig >/dev/null; then ldconfig; fi

clean: ## remove what was built, except the tools and the fuzzing corpus
	@rm -rf build-asan build-tsan build-portable build-fuzz
	@[ ! -d build ] || find build -mindepth 1 -maxdepth 1 ! -name tools ! -name corpus -exec rm -rf {} +
