# The commands of the project. Each one first installs the Debian packages that it needs and that are missing
# (tools/setup), so a fresh Debian 12 with git and make is enough. CMake and Ninja do the work: see CMakePresets.json.

JOBS   ?= $(shell nproc)
PREFIX ?= /usr/local
BUILD  := build
RECIPE ?= recipes/demo.toml
export CTEST_PARALLEL_LEVEL ?= $(JOBS)

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.PHONY: all test test-all train bench bench-faults compare judge check format asan tsan debug fuzz attack python install deb image \
        clean help setup

all: setup $(BUILD)/build.ninja            ## build the program: build/echelon (what `make` alone does)
	@cmake --build --preset release -j $(JOBS) --target echelon

test: setup $(BUILD)/build.ninja           ## build everything and run the tests
	@cmake --build --preset release -j $(JOBS)
	@ctest --preset release

test-all: setup $(BUILD)/build.ninja       ## the same, with the slow tests and the page in a browser (installs chromium)
	@tools/setup browser & cmake --build --preset release -j $(JOBS) && wait
	@ctest --preset all

train: all                                 ## train on the digits that come with the repository (RECIPE=... for another)
	@$(BUILD)/echelon train $(RECIPE)

bench: all                                 ## our speed on the reference networks, and of the kernels
	@cmake --build --preset release -j $(JOBS) --target benches
	@tools/bench $(BUILD)

bench-faults: all                          ## kills workers of a run at random: the same weights? how long until it goes on?
	@bench/faults

compare: all                               ## the same beside PyTorch, interleaved (installs python3-torch)
	@tools/setup peer
	@bench/compare

judge: all                                 ## every exported network beside onnxruntime (installs onnxruntime-node from npm)
	@tools/onnxruntime
	@cmake --build --preset release -j $(JOBS) --target test_onnx
	@$(BUILD)/tests/test_onnx --gtest_filter='OnnxExport.*'

check: setup                               ## format, include arrows, retired words, lint of changed files (TIDY=all: of every file), lengths, commit subjects
	@tools/setup check
	@mkdir -p build-check
	@cmake --preset check >build-check/configure.log || { cat build-check/configure.log; exit 1; }
	@TIDY=$(TIDY) JOBS=$(JOBS) tools/check build-check

format:                                    ## put the sources into the project's format
	@tools/setup check
	@git ls-files '*.h' '*.cpp' | xargs clang-format-14 -i

# ThreadSanitizer needs its usual addresses: address randomisation is switched off where the system allows it.
FIXED_ADDRESSES := $(shell setarch -R true 2>/dev/null && echo setarch -R)

asan tsan debug: setup                     ## build with that preset and run its tests
	@test -f build-$@/build.ninja || cmake --preset $@
	@cmake --build --preset $@ -j $(JOBS)
	@$(if $(filter tsan,$@),$(FIXED_ADDRESSES)) ctest --preset $@

SECONDS_EACH ?= 30
fuzz: setup                                ## libFuzzer on every reader of foreign bytes, SECONDS_EACH=30 seconds each
	@tools/setup fuzz
	@test -f build-fuzz/build.ninja || cmake --preset fuzz
	@cmake --build --preset fuzz -j $(JOBS) --target fuzzers
	@tools/fuzz build-fuzz $(SECONDS_EACH)

attack: all                                ## hostile files, run folders, connections, signals; a table of what held (ATTACK=--only ...)
	@tests/attack/run $(BUILD)/echelon $(ATTACK)

python: setup $(BUILD)/build.ninja         ## the package for Python: PYTHONPATH=build/python python3 -c 'import echelon'
	@cmake --build --preset release -j $(JOBS) --target echelon_python

install: setup $(BUILD)/build.ninja        ## program, manual, completions, Python package, libraries, to $(DESTDIR)$(PREFIX)
	@cmake --build --preset release -j $(JOBS) --target installed
	@DESTDIR=$(DESTDIR) cmake --install $(BUILD) --prefix $(PREFIX)

deb: setup $(BUILD)/build.ninja            ## a Debian package: build/echelon_VERSION_ARCH.deb (tools/test_deb tries it in a clean root)
	@tools/setup deb
	@cmake --build --preset release -j $(JOBS) --target installed
	@cd $(BUILD) && cpack -G DEB

image: deb                                 ## an OCI image of that package, as one file: build/echelon.oci.tar
	@tools/setup image
	@tools/make_image

clean:                                     ## remove what was built
	rm -rf build build-debug build-asan build-tsan build-fuzz build-check

help:                                      ## this list
	@awk -F ' *## ' '/^[a-z][a-z -]*:.*##/ { sub(/:.*/, "", $$1); printf "  make %-16s %s\n", $$1, $$2 }' Makefile

setup:
	@tools/setup build

$(BUILD)/build.ninja: CMakePresets.json | setup
	@cmake --preset release
	@touch $@
